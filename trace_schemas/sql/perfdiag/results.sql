-- What `perfdiag annotate` wrote into a trace: verdicts, the time budget, waits and fixes. Empty for
-- traces that are not annotated.

INCLUDE PERFETTO MODULE perfdiag.canonical;

-- Slices that hold results.
CREATE PERFETTO VIEW _perfdiag_result(
  -- Slice.
  id LONG,
  -- Category: `perfdiag.verdict` and so on.
  category STRING,
  -- Rank, NULL where the source does not say.
  rank LONG,
  -- Text on the slice.
  name STRING,
  -- Start.
  ts TIMESTAMP,
  -- Length.
  dur DURATION,
  -- Arguments.
  arg_set_id LONG
) AS
SELECT
  slice.id,
  slice.category,
  rank.rank,
  slice.name,
  slice.ts,
  slice.dur,
  slice.arg_set_id
FROM slice
JOIN track ON track.id = slice.track_id
JOIN _canonical_rank AS rank
  ON rank.upid = extract_arg(track.dimension_arg_set_id, 'upid')
WHERE
  slice.category IN ('perfdiag.verdict', 'perfdiag.budget', 'perfdiag.wait', 'perfdiag.fix');

-- What bounds the job, each rank, each step and each region.
CREATE PERFETTO VIEW perfdiag_verdict(
  -- Slice: its arguments hold the budget by leaf, and in `sql` the query that returns it.
  id LONG,
  -- `job`, `rank`, `step` or `region`.
  scope STRING,
  -- Rank; NULL for the job, and where the source does not say.
  rank LONG,
  -- Number of the step within the trace, NULL for job and rank.
  step LONG,
  -- `step`, or of a region `phase`, `annotation` or `module`; NULL for job and rank.
  kind STRING,
  -- Name of the step or region, NULL for job and rank.
  name STRING,
  -- Start of the window.
  ts TIMESTAMP,
  -- Its length.
  dur DURATION,
  -- `compute-bound`, `memory-bound`, `collective-bound`, `host-bound` or `unknown`.
  label STRING,
  -- Probability of the label.
  confidence DOUBLE,
  -- The second label, NULL where there is none.
  runner_up STRING,
  -- What the budget alone says.
  by_rules STRING,
  -- A sentence, NULL for regions.
  why STRING
) AS
SELECT
  id,
  extract_arg(arg_set_id, 'debug.scope') AS scope,
  iif(extract_arg(arg_set_id, 'debug.scope') = 'job', NULL, rank) AS rank,
  extract_arg(arg_set_id, 'debug.step') AS step,
  extract_arg(arg_set_id, 'debug.kind') AS kind,
  extract_arg(arg_set_id, 'debug.name') AS name,
  ts,
  dur,
  extract_arg(arg_set_id, 'debug.label') AS label,
  extract_arg(arg_set_id, 'debug.probability') AS confidence,
  nullif(extract_arg(arg_set_id, 'debug.runner_up'), '') AS runner_up,
  extract_arg(arg_set_id, 'debug.by_rules') AS by_rules,
  extract_arg(arg_set_id, 'debug.why') AS why
FROM _perfdiag_result
WHERE
  category = 'perfdiag.verdict'
  -- The job's verdict stands on every rank.
  AND (
    extract_arg(arg_set_id, 'debug.scope') != 'job'
    OR id = (
      SELECT
        min(id)
      FROM slice
      WHERE
        category = 'perfdiag.verdict' AND extract_arg(arg_set_id, 'debug.scope') = 'job'
    )
  );

-- The time budget: pieces that together fill the steps of each rank.
CREATE PERFETTO VIEW perfdiag_budget(
  -- Slice.
  id LONG,
  -- Rank.
  rank LONG,
  -- Start.
  ts TIMESTAMP,
  -- Length.
  dur DURATION,
  -- Leaf of the budget.
  leaf STRING,
  -- Label that the leaf speaks for, `unknown` where for none.
  label STRING
) AS
SELECT
  id,
  rank,
  ts,
  dur,
  name AS leaf,
  extract_arg(arg_set_id, 'correlation_id') AS label
FROM _perfdiag_result
WHERE
  category = 'perfdiag.budget';

-- Waits of ranks in collectives for the one that came last.
CREATE PERFETTO VIEW perfdiag_wait(
  -- Slice.
  id LONG,
  -- Rank that waits.
  rank LONG,
  -- Start.
  ts TIMESTAMP,
  -- Length.
  dur DURATION,
  -- Rank that was late, NULL where its trace does not say which it is.
  late_rank LONG,
  -- Time of it that nothing hides.
  exposed_ns LONG,
  -- Name of the collective.
  collective STRING,
  -- Process group, '' where the trace does not say.
  group_name STRING
) AS
SELECT
  id,
  rank,
  ts,
  dur,
  cast_int!(nullif(extract_arg(arg_set_id, 'debug.late_rank'), '?')) AS late_rank,
  extract_arg(arg_set_id, 'debug.exposed_ns') AS exposed_ns,
  extract_arg(arg_set_id, 'debug.collective') AS collective,
  extract_arg(arg_set_id, 'debug.group') AS group_name
FROM _perfdiag_result
WHERE
  category = 'perfdiag.wait';

-- Fixes on the steps in which they save time.
CREATE PERFETTO VIEW perfdiag_fix_step(
  -- Slice: table `flow` leads from it to the slices that prove the fix in this step.
  id LONG,
  -- Name of the diagnosis.
  fix STRING,
  -- Rank.
  rank LONG,
  -- Number of the step within the trace.
  step LONG,
  -- Start of the step.
  ts TIMESTAMP,
  -- Its length.
  dur DURATION,
  -- What the budget holds of it in this step.
  saving_ns LONG
) AS
SELECT
  id,
  extract_arg(arg_set_id, 'debug.fix') AS fix,
  rank,
  extract_arg(arg_set_id, 'debug.step') AS step,
  ts,
  dur,
  extract_arg(arg_set_id, 'debug.saving_here_ns') AS saving_ns
FROM _perfdiag_result
WHERE
  category = 'perfdiag.fix';

-- Fixes of the job, the best first.
CREATE PERFETTO VIEW perfdiag_fix(
  -- Name of the diagnosis.
  id STRING,
  -- Slice with all that is known of it; see `perfdiag_fix_step`.
  slice_id LONG,
  -- Place among the fixes, from 1.
  place LONG,
  -- Whose fix it is.
  layer STRING,
  -- What is wrong.
  title STRING,
  -- What it saves of a step.
  saving_ns_per_step LONG,
  -- The least, nine times in ten.
  saving_low_ns LONG,
  -- The most, likewise.
  saving_high_ns LONG,
  -- What it saves after all fixes before it.
  saving_after_previous_ns LONG,
  -- How sure the diagnosis is.
  confidence DOUBLE,
  -- `replay` or `static bound`.
  basis STRING,
  -- Rank that it costs most, NULL where the source does not say.
  rank LONG,
  -- All ranks that it concerns.
  ranks STRING,
  -- A sentence with its numbers on this rank.
  why STRING,
  -- What to change.
  how STRING,
  -- How to see that it worked.
  verify STRING
) AS
SELECT
  extract_arg(arg_set_id, 'debug.fix') AS id,
  id AS slice_id,
  extract_arg(arg_set_id, 'debug.place') AS place,
  extract_arg(arg_set_id, 'debug.layer') AS layer,
  extract_arg(arg_set_id, 'debug.title') AS title,
  extract_arg(arg_set_id, 'debug.saving_ns_per_step') AS saving_ns_per_step,
  extract_arg(arg_set_id, 'debug.saving_low_ns') AS saving_low_ns,
  extract_arg(arg_set_id, 'debug.saving_high_ns') AS saving_high_ns,
  extract_arg(arg_set_id, 'debug.saving_after_previous_ns') AS saving_after_previous_ns,
  extract_arg(arg_set_id, 'debug.confidence') AS confidence,
  extract_arg(arg_set_id, 'debug.basis') AS basis,
  rank,
  extract_arg(arg_set_id, 'debug.ranks') AS ranks,
  extract_arg(arg_set_id, 'debug.why') AS why,
  extract_arg(arg_set_id, 'debug.how') AS how,
  extract_arg(arg_set_id, 'debug.verify') AS verify
FROM _perfdiag_result
WHERE
  category = 'perfdiag.fix'
  AND extract_arg(arg_set_id, 'debug.full') = 1
  AND extract_arg(arg_set_id, 'debug.worst') = 1
ORDER BY
  place;
