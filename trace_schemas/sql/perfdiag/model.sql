-- The model: ranks, devices, lanes, what ran on them, steps and regions, the same for every
-- format. Times are nanoseconds; ids of slices are those of table `slice`.

INCLUDE PERFETTO MODULE perfdiag.adapter;

INCLUDE PERFETTO MODULE perfdiag.canonical;

-- Ranks in the trace.
CREATE PERFETTO TABLE perfdiag_rank(
  -- Process of the rank.
  id LONG,
  -- Rank, NULL where the source does not say.
  rank LONG,
  -- Ranks in the job, NULL where the source does not say.
  world_size LONG,
  -- Host name.
  host STRING,
  -- What was read.
  source STRING,
  -- Its format.
  format STRING,
  -- Unix time of trace time 0, NULL where it is not known.
  clock_unix_ns LONG,
  -- How sure that is: `exact`, `guess` or `none`.
  clock_quality STRING
) AS
SELECT
  upid AS id,
  rank,
  world_size,
  host,
  source,
  format,
  clock_unix_ns,
  clock_quality
FROM _canonical_rank
UNION ALL
SELECT
  0 AS id,
  cast_int!(NULL) AS rank,
  cast_int!(NULL) AS world_size,
  '' AS host,
  '' AS source,
  'perfetto' AS format,
  cast_int!(NULL) AS clock_unix_ns,
  'none' AS clock_quality
FROM (
  SELECT
    1
  FROM _adapter_track
  LIMIT 1
);

-- Devices that the trace names.
CREATE PERFETTO TABLE perfdiag_device(
  -- Fact.
  id LONG,
  -- Rank that names it.
  rank LONG,
  -- Ordinal, as device work refers to it.
  ordinal LONG,
  -- Product name, '' where the source does not say.
  name STRING,
  -- Vendor in lower case, '' where unknown.
  vendor STRING,
  -- Streaming multiprocessors or compute units, 0 where unknown.
  sm_count LONG,
  -- Device memory, 0 where unknown.
  memory_bytes LONG
) AS
SELECT
  fact.id,
  rank.rank,
  extract_arg(fact.arg_set_id, 'debug.ordinal') AS ordinal,
  fact.name,
  extract_arg(fact.arg_set_id, 'debug.vendor') AS vendor,
  extract_arg(fact.arg_set_id, 'debug.sm_count') AS sm_count,
  extract_arg(fact.arg_set_id, 'debug.memory_bytes') AS memory_bytes
FROM _canonical_fact AS fact
JOIN _canonical_rank AS rank USING (upid)
WHERE
  fact.category = 'perfdiag.device'
UNION ALL
SELECT DISTINCT
  device_id AS id,
  cast_int!(NULL) AS rank,
  device_id AS ordinal,
  '' AS name,
  '' AS vendor,
  0 AS sm_count,
  0 AS memory_bytes
FROM _adapter_track
WHERE
  device_id IS NOT NULL;

-- Threads and streams of canonical traces.
CREATE PERFETTO TABLE _perfdiag_own_lane(
  -- Track.
  track_id LONG,
  -- Rank.
  rank LONG,
  -- Lane, numbered within its rank.
  lane_id LONG,
  -- `thread` or `stream`.
  kind STRING,
  -- Name for people.
  name STRING,
  -- Process as the source writes it.
  process STRING,
  -- Thread or stream as the source writes it.
  thread STRING,
  -- Device ordinal, NULL on the host.
  device_id LONG,
  -- Stream number, NULL on the host.
  stream LONG
) AS
SELECT
  track.track_id,
  rank.rank,
  track.lane_id,
  track.kind,
  track.name,
  track.process,
  track.thread,
  track.device_id,
  track.stream
FROM _canonical_track AS track
JOIN _canonical_rank AS rank USING (upid);

CREATE PERFETTO INDEX _perfdiag_own_lane_track ON _perfdiag_own_lane(track_id);

-- Threads and streams, one row for each track that shows one.
CREATE PERFETTO TABLE perfdiag_lane(
  -- Track.
  track_id LONG,
  -- Rank.
  rank LONG,
  -- Lane, numbered within its rank. Slices that cross lie on several tracks of one lane.
  lane_id LONG,
  -- `thread` or `stream`.
  kind STRING,
  -- Name for people.
  name STRING,
  -- Process as the source writes it.
  process STRING,
  -- Thread or stream as the source writes it.
  thread STRING,
  -- Device ordinal, NULL on the host.
  device_id LONG,
  -- Stream number, NULL on the host.
  stream LONG
) AS
SELECT
  track_id,
  rank,
  lane_id,
  kind,
  name,
  process,
  thread,
  device_id,
  stream
FROM _perfdiag_own_lane
UNION ALL
SELECT
  track_id,
  cast_int!(NULL) AS rank,
  lane_id,
  kind,
  name,
  process,
  thread,
  device_id,
  stream
FROM _adapter_track;

CREATE PERFETTO INDEX _perfdiag_lane_track ON perfdiag_lane(track_id);

-- Calls of a runtime or driver, with the id by which device work refers to them.
CREATE PERFETTO TABLE _perfdiag_call(
  -- Slice.
  id LONG,
  -- Rank.
  rank LONG,
  -- Start of the call.
  ts TIMESTAMP,
  -- Its length.
  dur DURATION,
  -- Lane.
  lane_id LONG,
  -- Name of the call.
  api STRING,
  -- What the call does: `launch`, `graph_launch`, `copy`, `fill`, `sync`, `event`, `alloc`,
  -- `load` or `other`.
  role STRING,
  -- Correlation id, NULL where it has none.
  correlation LONG,
  -- Enclosing slice of its track.
  parent_id LONG
) AS
SELECT
  slice.id,
  lane.rank,
  slice.ts,
  slice.dur,
  lane.lane_id,
  slice.name AS api,
  substr(slice.category, 9) AS role,
  extract_arg(slice.arg_set_id, 'debug.correlation') AS correlation,
  slice.parent_id
FROM slice
JOIN _perfdiag_own_lane AS lane USING (track_id)
WHERE
  slice.category GLOB 'runtime.*'
UNION ALL
SELECT
  id,
  cast_int!(NULL) AS rank,
  ts,
  dur,
  lane_id,
  name AS api,
  CASE
    WHEN name GLOB '*Synchronize*' OR name GLOB '*_sync*' THEN 'sync'
    WHEN name GLOB '*Memcpy*' THEN 'copy'
    WHEN name GLOB '*Memset*' THEN 'fill'
    WHEN name GLOB '*GraphLaunch*' THEN 'graph_launch'
    WHEN name GLOB '*Launch*' OR name GLOB '*launch*' THEN 'launch'
    WHEN name GLOB '*Event*' THEN 'event'
    WHEN name GLOB '*Malloc*' OR name GLOB '*Free*' THEN 'alloc'
    ELSE 'other'
  END AS role,
  correlation,
  parent_id
FROM _adapter_slice
WHERE
  kind = 'runtime';

-- The call that counts for each correlation id: the first one that bears it.
CREATE PERFETTO TABLE _perfdiag_launcher(
  -- Rank.
  rank LONG,
  -- Correlation id.
  correlation LONG,
  -- Slice of the call.
  launch_id LONG,
  -- Start of the call.
  launch_ts TIMESTAMP,
  -- Its length.
  launch_dur DURATION,
  -- Lane of the call.
  launch_lane_id LONG
) AS
SELECT
  rank,
  correlation,
  id AS launch_id,
  min(ts) AS launch_ts,
  dur AS launch_dur,
  lane_id AS launch_lane_id
FROM _perfdiag_call
WHERE
  correlation IS NOT NULL
GROUP BY
  rank,
  correlation;

CREATE PERFETTO INDEX _perfdiag_launcher_correlation ON _perfdiag_launcher(correlation);

-- Work of devices, with its launch.
CREATE PERFETTO TABLE _perfdiag_work(
  -- Slice.
  id LONG,
  -- Rank.
  rank LONG,
  -- Device ordinal.
  device_id LONG,
  -- Start.
  ts TIMESTAMP,
  -- Duration.
  dur DURATION,
  -- Lane.
  lane_id LONG,
  -- Name.
  name STRING,
  -- `kernel`, `copy`, `fill` or `collective`.
  kind STRING,
  -- Class of its name: `_canonical_kernel_class.id`.
  class_id LONG,
  -- Kernel family.
  family STRING,
  -- What the family is bound by: `compute`, `memory` or `unclassified`.
  bound STRING,
  -- Collective operation, '' for other work.
  collective STRING,
  -- Probability of the family: 1 where the table knows the name, less where it was guessed.
  family_probability DOUBLE,
  -- Launching call, NULL where the trace has none.
  launch_id LONG,
  -- Its start.
  launch_ts TIMESTAMP,
  -- Its length.
  launch_dur DURATION,
  -- Its lane.
  launch_lane_id LONG,
  -- Arguments.
  arg_set_id LONG
) AS
SELECT
  work.id,
  lane.rank,
  lane.device_id,
  work.ts,
  work.dur,
  lane.lane_id,
  work.name,
  work.category AS kind,
  class.id AS class_id,
  class.family,
  class.bound,
  class.collective,
  class.probability AS family_probability,
  launcher.launch_id,
  launcher.launch_ts,
  launcher.launch_dur,
  launcher.launch_lane_id,
  work.arg_set_id
FROM slice AS work
JOIN _perfdiag_own_lane AS lane USING (track_id)
LEFT JOIN _canonical_kernel_class AS class ON class.name = work.name
LEFT JOIN _perfdiag_launcher AS launcher
  ON launcher.correlation = extract_arg(work.arg_set_id, 'debug.correlation')
  AND launcher.rank IS lane.rank
WHERE
  work.category IN ('kernel', 'copy', 'fill', 'collective')
UNION ALL
SELECT
  work.id,
  cast_int!(NULL) AS rank,
  work.device_id,
  work.ts,
  work.dur,
  work.lane_id,
  work.name,
  work.kind,
  cast_int!(NULL) AS class_id,
  cast_string!(NULL) AS family,
  cast_string!(NULL) AS bound,
  iif(work.kind = 'collective', 'unknown', '') AS collective,
  cast_double!(NULL) AS family_probability,
  work.launch_id,
  call.ts AS launch_ts,
  call.dur AS launch_dur,
  call.lane_id AS launch_lane_id,
  work.arg_set_id
FROM _adapter_slice AS work
LEFT JOIN _adapter_slice AS call ON call.id = work.launch_id
WHERE
  work.kind IN ('kernel', 'copy', 'fill', 'collective')
  AND work.dur >= 0;

-- Steps.
CREATE PERFETTO TABLE perfdiag_step(
  -- Slice on the track of steps.
  id LONG,
  -- Rank.
  rank LONG,
  -- Number within the trace, from 0.
  ordinal LONG,
  -- Name of the marker.
  name STRING,
  -- `marker`, `inferred` or `whole`.
  source STRING,
  -- Start on the host.
  host_ts TIMESTAMP,
  -- Length on the host.
  host_dur DURATION,
  -- Start of the window: the previous step's completion.
  ts TIMESTAMP,
  -- Length of the window, to the step's own completion.
  dur DURATION
) AS
SELECT
  fact.id,
  rank.rank,
  extract_arg(fact.arg_set_id, 'debug.ordinal') AS ordinal,
  fact.name,
  extract_arg(fact.arg_set_id, 'debug.source') AS source,
  extract_arg(fact.arg_set_id, 'debug.host_ts') AS host_ts,
  extract_arg(fact.arg_set_id, 'debug.host_dur') AS host_dur,
  fact.ts,
  fact.dur
FROM _canonical_fact AS fact
JOIN _canonical_rank AS rank USING (upid)
WHERE
  fact.category = 'perfdiag.step'
UNION ALL
SELECT
  id,
  cast_int!(NULL) AS rank,
  ordinal,
  name,
  'marker' AS source,
  host_ts,
  host_dur,
  ts,
  dur
FROM _adapter_step;

CREATE PERFETTO INDEX _perfdiag_step_ordinal ON perfdiag_step(ordinal);

-- Parts of steps; those of one kind partition their step.
CREATE PERFETTO TABLE perfdiag_region(
  -- Slice on the track of its kind.
  id LONG,
  -- Rank.
  rank LONG,
  -- Step: `perfdiag_step.id`.
  step_id LONG,
  -- `phase`, `annotation` or `module`.
  kind STRING,
  -- Name; a path for modules.
  name STRING,
  -- Region that encloses it, NULL on the top level.
  parent_id LONG,
  -- Start of its window.
  ts TIMESTAMP,
  -- Length of its window.
  dur DURATION
) AS
SELECT
  fact.id,
  rank.rank,
  step.id AS step_id,
  extract_arg(fact.arg_set_id, 'debug.kind') AS kind,
  fact.name,
  cast_int!(NULL) AS parent_id,
  fact.ts,
  fact.dur
FROM _canonical_fact AS fact
JOIN _canonical_rank AS rank USING (upid)
JOIN perfdiag_step AS step
  ON step.ordinal = extract_arg(fact.arg_set_id, 'debug.step') AND step.rank IS rank.rank
WHERE
  fact.category = 'perfdiag.region';

-- Operators, annotations and Python frames of the host.
CREATE PERFETTO VIEW perfdiag_host_op(
  -- Slice.
  id LONG,
  -- Rank.
  rank LONG,
  -- Start.
  ts TIMESTAMP,
  -- Duration.
  dur DURATION,
  -- Lane.
  lane_id LONG,
  -- Name.
  name STRING,
  -- `host_op`, `annotation` or `python`.
  kind STRING,
  -- Enclosing slice of its track.
  parent_id LONG,
  -- Id that PyTorch gives the operator; its device work bears it too.
  external_id LONG,
  -- Number by which a backward operator finds its forward one.
  sequence_number LONG,
  -- Phase of the step in whose window it starts.
  phase STRING
) AS
SELECT
  slice.id,
  lane.rank,
  slice.ts,
  slice.dur,
  lane.lane_id,
  slice.name,
  slice.category AS kind,
  slice.parent_id,
  extract_arg(slice.arg_set_id, 'debug.external_id') AS external_id,
  extract_arg(slice.arg_set_id, 'debug.sequence_number') AS sequence_number,
  (
    SELECT
      name
    FROM perfdiag_region AS region
    WHERE
      region.kind = 'phase'
      AND region.rank IS lane.rank
      AND region.ts <= slice.ts
      AND slice.ts < region.ts + region.dur
  ) AS phase
FROM slice
JOIN _perfdiag_own_lane AS lane USING (track_id)
WHERE
  slice.category IN ('host_op', 'annotation', 'python')
UNION ALL
SELECT
  id,
  cast_int!(NULL) AS rank,
  ts,
  dur,
  lane_id,
  name,
  kind,
  parent_id,
  cast_int!(NULL) AS external_id,
  cast_int!(NULL) AS sequence_number,
  cast_string!(NULL) AS phase
FROM _adapter_slice
WHERE
  kind IN ('host_op', 'annotation', 'python');

-- Runtime calls that start device work.
CREATE PERFETTO VIEW perfdiag_launch(
  -- Slice.
  id LONG,
  -- Rank.
  rank LONG,
  -- Start of the call.
  ts TIMESTAMP,
  -- Its length.
  dur DURATION,
  -- Lane.
  lane_id LONG,
  -- Name of the call.
  api STRING,
  -- Id that its device work bears too.
  correlation LONG,
  -- Operator that made the call, NULL where none encloses it.
  host_op_id LONG
) AS
SELECT
  call.id,
  call.rank,
  call.ts,
  call.dur,
  call.lane_id,
  call.api,
  call.correlation,
  iif(parent.category = 'host_op' OR above.kind = 'host_op', parent.id, NULL) AS host_op_id
FROM _perfdiag_call AS call
LEFT JOIN slice AS parent ON parent.id = call.parent_id
LEFT JOIN _adapter_slice AS above ON above.id = call.parent_id
WHERE
  call.role IN ('launch', 'graph_launch', 'copy', 'fill')
  OR call.id IN (
    SELECT
      launch_id
    FROM _perfdiag_work
  );

-- Kernels, copies, fills and collectives.
CREATE PERFETTO VIEW perfdiag_device_op(
  -- Slice.
  id LONG,
  -- Rank.
  rank LONG,
  -- Device ordinal.
  device_id LONG,
  -- Start.
  ts TIMESTAMP,
  -- Duration.
  dur DURATION,
  -- Lane.
  lane_id LONG,
  -- Name.
  name STRING,
  -- `kernel`, `copy`, `fill` or `collective`.
  kind STRING,
  -- Launching call: `perfdiag_launch.id`, NULL where the trace has none.
  launch_id LONG,
  -- Operator that launched it: `perfdiag_host_op.id`.
  host_op_id LONG,
  -- Kernel family.
  family STRING,
  -- What the family is bound by: `compute`, `memory` or `unclassified`.
  bound STRING,
  -- Step that launched it: `perfdiag_step.id`; by time where there is no launch.
  step_id LONG,
  -- Probability of the family: 1 where the table knows the name, less where it was guessed.
  family_probability DOUBLE
) AS
SELECT
  work.id,
  work.rank,
  work.device_id,
  work.ts,
  work.dur,
  work.lane_id,
  work.name,
  work.kind,
  work.launch_id,
  iif(parent.category = 'host_op' OR above.kind = 'host_op', parent.id, NULL) AS host_op_id,
  work.family,
  work.bound,
  (
    SELECT
      step.id
    FROM perfdiag_step AS step
    WHERE
      step.rank IS work.rank
      AND iif(
        work.launch_ts IS NULL,
        step.ts <= work.ts AND work.ts < step.ts + step.dur,
        step.host_ts <= work.launch_ts AND work.launch_ts < step.host_ts + step.host_dur
      )
  ) AS step_id,
  work.family_probability
FROM _perfdiag_work AS work
LEFT JOIN slice AS call ON call.id = work.launch_id
LEFT JOIN slice AS parent ON parent.id = call.parent_id
LEFT JOIN _adapter_slice AS above ON above.id = call.parent_id;

-- What is said of each collective beside the name of its kernel.
CREATE PERFETTO VIEW _perfdiag_collective_said(
  -- Slice.
  id LONG,
  -- By its arguments, or by the innermost of three ranges around its launch that is named after
  -- a library of collectives; in lower case, NULL where nothing is said.
  text STRING,
  -- Whether its kernel leaves open what it does: sends and receives carry out exchanges too.
  vague LONG
) AS
SELECT
  work.id,
  lower(
    coalesce(
      extract_arg(work.arg_set_id, 'debug.collective_name'),
      iif(first.name GLOB '*ccl:*' OR first.name GLOB 'c10d::*', first.name, NULL),
      iif(second.name GLOB '*ccl:*' OR second.name GLOB 'c10d::*', second.name, NULL),
      iif(third.name GLOB '*ccl:*' OR third.name GLOB 'c10d::*', third.name, NULL)
    )
  ) AS text,
  work.collective IN ('send_recv', 'unknown')
  OR extract_arg(work.arg_set_id, 'debug.collective_name') IS NOT NULL AS vague
FROM _perfdiag_work AS work
LEFT JOIN slice AS call ON call.id = work.launch_id
LEFT JOIN slice AS first ON first.id = call.parent_id
LEFT JOIN slice AS second ON second.id = first.parent_id
LEFT JOIN slice AS third ON third.id = second.parent_id
WHERE
  work.kind = 'collective';

-- Collectives, with what their arguments say.
CREATE PERFETTO VIEW perfdiag_collective(
  -- Slice.
  id LONG,
  -- Device work: `perfdiag_device_op.id`.
  device_op_id LONG,
  -- Operation: `all_reduce`, `all_gather`, ..., or `unknown`; by its arguments where they say it,
  -- or the range around its launch, since the name of the kernel may not.
  op STRING,
  -- Process group, NULL where the trace does not say.
  group_name STRING,
  -- Ranks in the group.
  group_size LONG,
  -- Number of the collective within its group.
  seq LONG,
  -- Bytes of the larger of input and output, NULL where elements or type are missing.
  bytes LONG,
  -- Type of the elements, as the source writes it.
  dtype STRING
) AS
SELECT
  work.id,
  work.id AS device_op_id,
  CASE
    WHEN NOT said.vague THEN collective
    WHEN said.text GLOB '*reduce*scatter*' THEN 'reduce_scatter'
    WHEN said.text GLOB '*all*reduce*' THEN 'all_reduce'
    WHEN said.text GLOB '*all*gather*' THEN 'all_gather'
    WHEN said.text GLOB '*all*to*all*' THEN 'all_to_all'
    WHEN said.text GLOB '*broadcast*' THEN 'broadcast'
    WHEN said.text GLOB '*barrier*' THEN 'barrier'
    ELSE collective
  END AS op,
  extract_arg(arg_set_id, 'debug.group_name') AS group_name,
  extract_arg(arg_set_id, 'debug.group_size') AS group_size,
  extract_arg(arg_set_id, 'debug.collective_seq') AS seq,
  max(
    extract_arg(arg_set_id, 'debug.in_elements'),
    extract_arg(arg_set_id, 'debug.out_elements')
  ) * CASE lower(extract_arg(arg_set_id, 'debug.dtype'))
    WHEN 'double' THEN 8
    WHEN 'long' THEN 8
    WHEN 'float' THEN 4
    WHEN 'int' THEN 4
    WHEN 'bfloat16' THEN 2
    WHEN 'half' THEN 2
    WHEN 'short' THEN 2
    WHEN 'byte' THEN 1
    WHEN 'char' THEN 1
    WHEN 'bool' THEN 1
  END AS bytes,
  extract_arg(arg_set_id, 'debug.dtype') AS dtype
FROM _perfdiag_work AS work
JOIN _perfdiag_collective_said AS said USING (id)
WHERE
  work.kind = 'collective';

-- What counter tracks draw, each value with the time until the next one.
CREATE PERFETTO VIEW _perfdiag_sample(
  -- Sample.
  id LONG,
  -- Track.
  track_id LONG,
  -- Start.
  ts TIMESTAMP,
  -- Time until the next one, 0 for the last one.
  dur DURATION,
  -- Value, NULL where a sample ends and none begins.
  value DOUBLE
) AS
SELECT
  id,
  track_id,
  ts,
  coalesce(lead(ts) OVER (PARTITION BY track_id ORDER BY ts, id) - ts, 0) AS dur,
  value
FROM counter;

-- Samples of hardware counters.
CREATE PERFETTO VIEW perfdiag_counter(
  -- Sample.
  id LONG,
  -- Rank.
  rank LONG,
  -- Device ordinal, NULL for the host.
  device_id LONG,
  -- Name of the counter.
  metric STRING,
  -- Unit of the values.
  unit STRING,
  -- Start of the time that the sample stands for. Of a mean that is the sample before.
  ts TIMESTAMP,
  -- Length of that time, 0 for the last sample where the period is not known. Over missing samples
  -- there is no row.
  dur DURATION,
  -- Value.
  value DOUBLE
) AS
SELECT
  counter.id,
  rank.rank,
  -- `device 0`, or `streams of device 0` in an annotated trace.
  cast_int!(
    substr(iif(parent.name GLOB '*device *', parent.name, NULL), instr(parent.name, 'device ') + 7)
  ) AS device_id,
  track.name AS metric,
  track.unit,
  counter.ts,
  counter.dur,
  counter.value
FROM _perfdiag_sample AS counter
JOIN counter_track AS track ON track.id = counter.track_id
JOIN track AS own ON own.id = counter.track_id
LEFT JOIN track AS parent ON parent.id = own.parent_id
JOIN _canonical_rank AS rank
  ON rank.upid = coalesce(
    extract_arg(track.dimension_arg_set_id, 'upid'),
    extract_arg(parent.dimension_arg_set_id, 'upid')
  )
WHERE
  counter.value IS NOT NULL
  -- Below the group of an annotated trace are results, not counters of hardware.
  AND parent.name IS NOT 'perfdiag'
UNION ALL
SELECT
  id,
  cast_int!(NULL) AS rank,
  device_id,
  name AS metric,
  unit,
  ts,
  coalesce(lead(ts) OVER (PARTITION BY track_id ORDER BY ts) - ts, 0) AS dur,
  value
FROM _adapter_sample;

-- What the reader must know about the trace.
CREATE PERFETTO VIEW perfdiag_notice(
  -- Fact.
  id LONG,
  -- Rank.
  rank LONG,
  -- Kind, as the documentation lists them.
  kind STRING,
  -- `error`, `warning` or `info`.
  severity STRING,
  -- Events concerned.
  count LONG,
  -- A sentence.
  message STRING
) AS
SELECT
  fact.id,
  rank.rank,
  fact.name AS kind,
  extract_arg(fact.arg_set_id, 'debug.severity') AS severity,
  extract_arg(fact.arg_set_id, 'debug.count') AS count,
  extract_arg(fact.arg_set_id, 'debug.message') AS message
FROM _canonical_fact AS fact
JOIN _canonical_rank AS rank USING (upid)
WHERE
  fact.category = 'perfdiag.notice'
UNION ALL
SELECT
  row_number() OVER () - 1 AS id,
  cast_int!(NULL) AS rank,
  kind,
  severity,
  count,
  message
FROM _adapter_notice;
