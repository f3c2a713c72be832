-- What the analysis fetches: lean rows of the model, in the order of time.

INCLUDE PERFETTO MODULE perfdiag.evidence;

INCLUDE PERFETTO MODULE perfdiag.model;

INCLUDE PERFETTO MODULE perfdiag.results;

-- Names of device work, each once: rows of work are many, and text is slow to fetch.
CREATE PERFETTO VIEW _perfdiag_class_fact(
  -- Number of the class.
  id LONG,
  -- Name of the work.
  name STRING,
  -- Kernel family.
  family STRING,
  -- `compute`, `memory` or `unclassified`.
  bound STRING
) AS
SELECT
  id,
  name,
  family,
  bound
FROM _canonical_kernel_class
ORDER BY
  id;

-- Device work with its launch.
CREATE PERFETTO VIEW _perfdiag_work_fact(
  -- Slice.
  id LONG,
  -- Device ordinal.
  device_id LONG,
  -- Start.
  ts TIMESTAMP,
  -- Duration.
  dur DURATION,
  -- Lane.
  lane_id LONG,
  -- Name and what follows from it: `_perfdiag_class_fact.id`.
  class_id LONG,
  -- 0 kernel, 1 copy, 2 fill, 3 collective.
  kind LONG,
  -- Bytes of a copy or fill, NULL where unknown.
  bytes LONG,
  -- Launching call.
  launch_id LONG,
  -- Its start.
  launch_ts TIMESTAMP,
  -- Its length.
  launch_dur DURATION,
  -- Its lane.
  launch_lane_id LONG
) AS
SELECT
  id,
  device_id,
  ts,
  dur,
  lane_id,
  class_id,
  CASE kind WHEN 'kernel' THEN 0 WHEN 'copy' THEN 1 WHEN 'fill' THEN 2 ELSE 3 END AS kind,
  iif(kind IN ('copy', 'fill'), extract_arg(arg_set_id, 'debug.bytes'), NULL) AS bytes,
  launch_id,
  launch_ts,
  launch_dur,
  launch_lane_id
FROM _perfdiag_work
ORDER BY
  ts;

-- What only collectives say; they are few.
CREATE PERFETTO VIEW _perfdiag_collective_fact(
  -- Slice.
  id LONG,
  -- Operation.
  op STRING,
  -- Process group, NULL where the trace does not say.
  group_name STRING,
  -- Bytes, NULL where unknown.
  bytes LONG,
  -- Type of the elements, NULL where unknown.
  dtype STRING,
  -- Ranks in the group, NULL where unknown.
  group_size LONG,
  -- Number of the collective within its group, NULL where unknown.
  seq LONG,
  -- Rank that sends, NULL where it is no transfer between two or unknown.
  src_rank LONG,
  -- Rank that receives, likewise.
  dst_rank LONG
) AS
SELECT
  collective.id,
  op,
  group_name,
  bytes,
  dtype,
  group_size,
  seq,
  extract_arg(work.arg_set_id, 'debug.src_rank') AS src_rank,
  extract_arg(work.arg_set_id, 'debug.dst_rank') AS dst_rank
FROM perfdiag_collective AS collective
JOIN _perfdiag_work AS work USING (id)
ORDER BY
  collective.id;

-- Correlation ids of device records, those without a usable time included.
CREATE PERFETTO TABLE _perfdiag_recorded(
  -- Correlation id.
  correlation LONG
) AS
SELECT DISTINCT
  extract_arg(arg_set_id, 'debug.correlation') AS correlation
FROM _perfdiag_work
UNION
SELECT
  extract_arg(arg_set_id, 'debug.correlation') AS correlation
FROM _canonical_fact
WHERE
  category = 'perfdiag.set_aside';

CREATE PERFETTO INDEX _perfdiag_recorded_correlation ON _perfdiag_recorded(correlation);

-- Runtime calls that matter for a budget: what starts or awaits device work, or captures it.
CREATE PERFETTO VIEW _perfdiag_call_fact(
  -- Slice.
  id LONG,
  -- Start.
  ts TIMESTAMP,
  -- Duration.
  dur DURATION,
  -- Lane.
  lane_id LONG,
  -- Name of the call.
  api STRING,
  -- What the call does.
  role STRING,
  -- 1 where device records bear its correlation id.
  linked LONG,
  -- Operator that made the call, where it blocks the host.
  op STRING,
  -- Enclosing slice of its track.
  parent_id LONG
) AS
SELECT
  call.id,
  call.ts,
  call.dur,
  call.lane_id,
  call.api,
  call.role,
  recorded.correlation IS NOT NULL AS linked,
  blocking.op,
  call.parent_id
FROM _perfdiag_call AS call
LEFT JOIN _perfdiag_recorded AS recorded USING (correlation)
LEFT JOIN perfdiag_blocking_call AS blocking USING (id)
ORDER BY
  call.ts;

-- What the host did, runtime calls apart.
CREATE PERFETTO VIEW _perfdiag_host_fact(
  -- Slice.
  id LONG,
  -- Enclosing slice of its track.
  parent_id LONG,
  -- Start.
  ts TIMESTAMP,
  -- Duration.
  dur DURATION,
  -- Lane.
  lane_id LONG,
  -- `host_op`, `annotation`, `python` or `overhead`.
  kind STRING,
  -- Name.
  name STRING
) AS
SELECT
  slice.id,
  slice.parent_id,
  slice.ts,
  slice.dur,
  lane.lane_id,
  slice.category AS kind,
  slice.name
FROM slice
JOIN perfdiag_lane AS lane USING (track_id)
WHERE
  slice.category IN ('host_op', 'annotation', 'python', 'overhead')
ORDER BY
  slice.ts;

-- Steps in order.
CREATE PERFETTO VIEW _perfdiag_step_fact(
  -- Slice.
  id LONG,
  -- Number within the trace.
  ordinal LONG,
  -- Name.
  name STRING,
  -- `marker`, `inferred` or `whole`.
  source STRING,
  -- Start on the host.
  host_ts TIMESTAMP,
  -- Length on the host.
  host_dur DURATION,
  -- Start of the window.
  ts TIMESTAMP,
  -- Length of the window.
  dur DURATION
) AS
SELECT
  id,
  ordinal,
  name,
  source,
  host_ts,
  host_dur,
  ts,
  dur
FROM perfdiag_step
ORDER BY
  ordinal;

-- Regions in order of step and time.
CREATE PERFETTO VIEW _perfdiag_region_fact(
  -- Ordinal of the step.
  step LONG,
  -- `phase`, `annotation` or `module`.
  kind STRING,
  -- Name.
  name STRING,
  -- Start of the window.
  ts TIMESTAMP,
  -- Length of the window.
  dur DURATION,
  -- Start on the host.
  host_ts TIMESTAMP
) AS
SELECT
  step.ordinal AS step,
  region.kind,
  region.name,
  region.ts,
  region.dur,
  extract_arg(fact.arg_set_id, 'debug.host_ts') AS host_ts
FROM perfdiag_region AS region
JOIN perfdiag_step AS step ON step.id = region.step_id
JOIN _canonical_fact AS fact ON fact.id = region.id
ORDER BY
  step.ordinal,
  region.kind,
  region.ts,
  region.id;
