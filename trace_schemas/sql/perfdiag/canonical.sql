-- What a canonical trace says: slices of category `perfdiag.*` hold the facts that tracks
-- cannot, every other slice lies on the track of a lane. Empty for other traces.

-- Facts that perfdiag wrote into the trace.
CREATE PERFETTO TABLE _canonical_fact(
  -- Slice.
  id LONG,
  -- Category, `perfdiag.lane` and so on.
  category STRING,
  -- Name of what the fact is about.
  name STRING,
  -- Start, for steps and regions.
  ts TIMESTAMP,
  -- Duration, for steps and regions.
  dur DURATION,
  -- Arguments.
  arg_set_id LONG,
  -- Process of the rank that the fact belongs to.
  upid LONG
) AS
SELECT
  slice.id,
  slice.category,
  slice.name,
  slice.ts,
  slice.dur,
  slice.arg_set_id,
  extract_arg(track.dimension_arg_set_id, 'upid') AS upid
FROM slice
JOIN track ON slice.track_id = track.id
WHERE
  slice.category GLOB 'perfdiag.*'
  -- Results, which an annotated trace holds: see `perfdiag.results`.
  AND NOT slice.category IN (
    'perfdiag.verdict',
    'perfdiag.budget',
    'perfdiag.wait',
    'perfdiag.fix'
  );

-- Ranks of a canonical trace.
CREATE PERFETTO TABLE _canonical_rank(
  -- Process of the rank.
  upid LONG,
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
  -- `exact`, `guess` or `none`.
  clock_quality STRING
) AS
SELECT
  upid,
  nullif(extract_arg(arg_set_id, 'debug.rank'), -1) AS rank,
  nullif(extract_arg(arg_set_id, 'debug.world_size'), -1) AS world_size,
  extract_arg(arg_set_id, 'debug.host') AS host,
  extract_arg(arg_set_id, 'debug.source') AS source,
  extract_arg(arg_set_id, 'debug.format') AS format,
  nullif(extract_arg(arg_set_id, 'debug.clock_unix_ns'), -1) AS clock_unix_ns,
  extract_arg(arg_set_id, 'debug.clock_quality') AS clock_quality
FROM _canonical_fact
WHERE
  category = 'perfdiag.rank';

-- Track uuids, by which facts refer to tracks.
CREATE PERFETTO TABLE _canonical_uuid(
  -- Track.
  track_id LONG,
  -- Its uuid.
  uuid LONG
) AS
SELECT
  id AS track_id,
  extract_arg(source_arg_set_id, 'trace_id') AS uuid
FROM track
WHERE
  EXISTS (
    SELECT
      1
    FROM _canonical_rank
  )
  AND extract_arg(source_arg_set_id, 'trace_id') IS NOT NULL;

-- Tracks of a canonical trace, and the lane that each shows.
CREATE PERFETTO TABLE _canonical_track(
  -- Track.
  track_id LONG,
  -- Process of the rank.
  upid LONG,
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
  uuid.track_id,
  fact.upid,
  extract_arg(fact.arg_set_id, 'debug.lane') AS lane_id,
  extract_arg(fact.arg_set_id, 'debug.kind') AS kind,
  fact.name,
  extract_arg(fact.arg_set_id, 'debug.process') AS process,
  extract_arg(fact.arg_set_id, 'debug.thread') AS thread,
  nullif(extract_arg(fact.arg_set_id, 'debug.device'), -1) AS device_id,
  nullif(extract_arg(fact.arg_set_id, 'debug.stream'), -1) AS stream
FROM _canonical_fact AS fact
JOIN _canonical_uuid AS uuid ON uuid.uuid = extract_arg(fact.arg_set_id, 'debug.uuid')
WHERE
  fact.category = 'perfdiag.lane';

-- Classes of device work by name, from perfdiag's table of kernel families.
CREATE PERFETTO TABLE _canonical_kernel_class(
  -- Number of the class within the trace.
  id LONG,
  -- Name of the kernel, copy, fill or collective.
  name STRING,
  -- Kernel family.
  family STRING,
  -- `compute`, `memory` or `unclassified`.
  bound STRING,
  -- Collective operation, '' for other work.
  collective STRING,
  -- Probability of the family: 1 from the table, less for a guess.
  probability DOUBLE
) AS
SELECT
  min(id) AS id,
  name,
  min(extract_arg(arg_set_id, 'debug.family')) AS family,
  min(extract_arg(arg_set_id, 'debug.bound')) AS bound,
  min(extract_arg(arg_set_id, 'debug.collective')) AS collective,
  coalesce(min(extract_arg(arg_set_id, 'debug.probability')), 1.0) AS probability
FROM _canonical_fact
WHERE
  category = 'perfdiag.kernel_class'
GROUP BY
  name;

CREATE PERFETTO INDEX _canonical_kernel_class_name ON _canonical_kernel_class(name);

-- Arguments of facts.
CREATE PERFETTO VIEW _canonical_fact_arg(
  -- Slice of the fact.
  id LONG,
  -- Category of the fact.
  category STRING,
  -- What the fact is about.
  name STRING,
  -- Name of the argument.
  key STRING,
  -- Its value, where that is an integer.
  int_value LONG,
  -- Its value, where that is a fraction.
  real_value DOUBLE,
  -- Its value, where that is text.
  string_value STRING
) AS
SELECT
  fact.id,
  fact.category,
  fact.name,
  substr(args.flat_key, 7) AS key,
  args.int_value,
  args.real_value,
  args.string_value
FROM _canonical_fact AS fact
JOIN args USING (arg_set_id);

-- Slices of lanes.
CREATE PERFETTO VIEW _canonical_slice(
  -- Slice.
  id LONG,
  -- Start.
  ts TIMESTAMP,
  -- Duration.
  dur DURATION,
  -- Lane.
  lane_id LONG,
  -- Name.
  name STRING,
  -- Kind; for runtime calls also what they do.
  category STRING
) AS
SELECT
  slice.id,
  slice.ts,
  slice.dur,
  track.lane_id,
  slice.name,
  slice.category
FROM slice
JOIN _canonical_track AS track USING (track_id);

-- Arguments of slices of lanes.
CREATE PERFETTO VIEW _canonical_arg(
  -- Slice.
  id LONG,
  -- Name of the argument.
  key STRING,
  -- Its value, NULL where it is text.
  int_value LONG,
  -- Its value, NULL where it is a number.
  string_value STRING
) AS
SELECT
  slice.id,
  substr(args.flat_key, 7) AS key,
  args.int_value,
  args.string_value
FROM slice
JOIN _canonical_track USING (track_id)
JOIN args USING (arg_set_id);

-- Samples of counters.
CREATE PERFETTO VIEW _canonical_sample(
  -- Track uuid of the counter.
  uuid LONG,
  -- Time of the sample.
  ts TIMESTAMP,
  -- Value.
  value DOUBLE
) AS
SELECT
  uuid.uuid,
  counter.ts,
  counter.value
FROM counter
JOIN _canonical_uuid AS uuid USING (track_id)
ORDER BY
  counter.ts,
  counter.id;
