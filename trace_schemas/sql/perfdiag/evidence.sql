-- What the evidence of a fix is asked from: each figure that a finding states can be had again
-- with one query on the same trace.

INCLUDE PERFETTO MODULE perfdiag.model;

-- Calls that block the host until the device has caught up.
CREATE PERFETTO VIEW perfdiag_blocking_call(
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
  -- Operator that made it, '' where none does.
  op STRING
) AS
SELECT
  call.id,
  call.rank,
  call.ts,
  call.dur,
  call.lane_id,
  call.api,
  iif(parent.category IS 'host_op', parent.name, '') AS op
FROM _perfdiag_call AS call
LEFT JOIN slice AS parent ON parent.id = call.parent_id
WHERE
  call.role = 'sync';

-- Copies between host and device that block the host: from or to pageable memory, which the
-- driver stages itself, or by a call that returns only when the copy is done.
CREATE PERFETTO VIEW perfdiag_blocking_copy(
  -- Device work: `perfdiag_device_op.id`.
  id LONG,
  -- Rank.
  rank LONG,
  -- Device ordinal.
  device_id LONG,
  -- Start.
  ts TIMESTAMP,
  -- Duration.
  dur DURATION,
  -- Name.
  name STRING,
  -- Name of the call, NULL where the trace has none.
  api STRING,
  -- 1 from the host to the device, 0 back.
  to_device LONG
) AS
SELECT
  work.id,
  work.rank,
  work.device_id,
  work.ts,
  work.dur,
  work.name,
  call.api,
  work.name GLOB '*HtoD*'
  OR work.name GLOB '*HostToDevice*'
  OR work.name GLOB '*(Pageable ->*' AS to_device
FROM _perfdiag_work AS work
LEFT JOIN _perfdiag_call AS call ON call.id = work.launch_id
WHERE
  work.kind = 'copy'
  AND (
    work.name GLOB '*Pageable*'
    OR (
      call.role = 'sync'
      AND (
        work.name GLOB '*HtoD*'
        OR work.name GLOB '*DtoH*'
        OR work.name GLOB '*HostToDevice*'
        OR work.name GLOB '*DeviceToHost*'
      )
    )
  );

-- Device work with the innermost operator around its launch.
CREATE PERFETTO VIEW perfdiag_launched_work(
  -- Device work: `perfdiag_device_op.id`.
  id LONG,
  -- Rank.
  rank LONG,
  -- Device ordinal, NULL where the trace names none.
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
  -- Kernel family.
  family STRING,
  -- Launching call, NULL where the trace has none.
  launch_id LONG,
  -- Name of the operator, '' where none of the four slices around the call is one.
  op STRING
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
  work.family,
  work.launch_id,
  CASE
    WHEN first.category = 'host_op' THEN first.name
    WHEN second.category = 'host_op' THEN second.name
    WHEN third.category = 'host_op' THEN third.name
    WHEN fourth.category = 'host_op' THEN fourth.name
    ELSE ''
  END AS op
FROM _perfdiag_work AS work
LEFT JOIN slice AS call ON call.id = work.launch_id
LEFT JOIN slice AS first ON first.id = call.parent_id
LEFT JOIN slice AS second ON second.id = first.parent_id
LEFT JOIN slice AS third ON third.id = second.parent_id
LEFT JOIN slice AS fourth ON fourth.id = third.parent_id;

-- Time of the work of one kind that operators of one name launched on a device.
CREATE PERFETTO FUNCTION perfdiag_op_work_ns(
  -- Device ordinal, -1 where the trace names none.
  device_id LONG,
  -- Innermost operator around the launch, '' for none.
  op STRING,
  -- `kernel`, `copy`, `fill` or `collective`.
  kind STRING
)
-- Sum of its durations.
RETURNS LONG AS
SELECT
  coalesce(sum(dur), 0)
FROM perfdiag_launched_work
WHERE
  coalesce(device_id, -1) = $device_id AND op = $op AND kind = $kind;

-- Time of the device work of one name.
CREATE PERFETTO FUNCTION perfdiag_work_ns(
  -- Device ordinal, -1 where the trace names none.
  device_id LONG,
  -- Name of the kernel, copy, fill or collective.
  name STRING
)
-- Sum of its durations.
RETURNS LONG AS
SELECT
  coalesce(sum(dur), 0)
FROM _perfdiag_work
WHERE
  coalesce(device_id, -1) = $device_id AND name = $name;

-- Number of pieces of device work of one name.
CREATE PERFETTO FUNCTION perfdiag_work_count(
  -- Device ordinal, -1 where the trace names none.
  device_id LONG,
  -- Name of the kernel, copy, fill or collective.
  name STRING
)
-- How many there are.
RETURNS LONG AS
SELECT
  count(*)
FROM _perfdiag_work
WHERE
  coalesce(device_id, -1) = $device_id AND name = $name;

-- Time in calls of a runtime or driver that have one name.
CREATE PERFETTO FUNCTION perfdiag_call_ns(
  -- Name of the call.
  api STRING
)
-- Sum of their durations.
RETURNS LONG AS
SELECT
  coalesce(sum(dur), 0)
FROM _perfdiag_call
WHERE
  api = $api;

-- Number of calls of a runtime or driver that have one name.
CREATE PERFETTO FUNCTION perfdiag_call_count(
  -- Name of the call.
  api STRING
)
-- How many there are.
RETURNS LONG AS
SELECT
  count(*)
FROM _perfdiag_call
WHERE
  api = $api;

-- Number of blocking calls of one kind, see `perfdiag_blocking_call`.
CREATE PERFETTO FUNCTION perfdiag_blocking_calls(
  -- Name of the call.
  api STRING,
  -- Operator that makes it, '' for none.
  op STRING
)
-- How many there are.
RETURNS LONG AS
SELECT
  count(*)
FROM perfdiag_blocking_call
WHERE
  api = $api AND op = $op;

-- Time in host ranges of one name: operators, annotations, frames, overhead of the profiler.
CREATE PERFETTO FUNCTION perfdiag_range_ns(
  -- Name of the range.
  name STRING
)
-- Sum of the ranges that start inside a step.
RETURNS LONG AS
SELECT
  coalesce(sum(slice.dur), 0)
FROM slice
JOIN perfdiag_lane AS lane USING (track_id)
WHERE
  slice.name = $name
  AND slice.category IN ('host_op', 'annotation', 'python', 'overhead')
  AND EXISTS(
    SELECT
      1
    FROM perfdiag_step AS step
    WHERE
      step.rank IS lane.rank AND step.ts <= slice.ts AND slice.ts < step.ts + step.dur
  );

-- Time of the work of one kind on one lane.
CREATE PERFETTO FUNCTION perfdiag_lane_work_ns(
  -- Lane: `perfdiag_lane.lane_id`.
  lane_id LONG,
  -- `kernel`, `copy`, `fill` or `collective`.
  kind STRING
)
-- Sum of its durations.
RETURNS LONG AS
SELECT
  coalesce(sum(dur), 0)
FROM _perfdiag_work
WHERE
  lane_id = $lane_id AND kind = $kind;

-- Number of kernels of a device.
CREATE PERFETTO FUNCTION perfdiag_kernel_count(
  -- Device ordinal, -1 where the trace names none.
  device_id LONG
)
-- How many there are, collectives and copies apart.
RETURNS LONG AS
SELECT
  count(*)
FROM _perfdiag_work
WHERE
  coalesce(device_id, -1) = $device_id AND kind = 'kernel';

-- Median duration of the kernels of a device.
CREATE PERFETTO FUNCTION perfdiag_median_kernel_ns(
  -- Device ordinal, -1 where the trace names none.
  device_id LONG
)
-- The median; the mean of the middle two where their number is even.
RETURNS DOUBLE AS
SELECT
  avg(dur)
FROM (
  SELECT
    dur,
    row_number() OVER (ORDER BY dur) AS place,
    count(*) OVER () AS total
  FROM _perfdiag_work
  WHERE
    coalesce(device_id, -1) = $device_id AND kind = 'kernel'
)
WHERE
  place IN ((total + 1) / 2, (total + 2) / 2);

-- Time of the kernels of a device that belong to one family.
CREATE PERFETTO FUNCTION perfdiag_family_ns(
  -- Device ordinal, -1 where the trace names none.
  device_id LONG,
  -- Kernel family.
  family STRING
)
-- Sum of their durations.
RETURNS LONG AS
SELECT
  coalesce(sum(dur), 0)
FROM _perfdiag_work
WHERE
  coalesce(device_id, -1) = $device_id AND kind = 'kernel' AND family = $family;

-- Time of the copies that block the host, see `perfdiag_blocking_copy`.
CREATE PERFETTO FUNCTION perfdiag_blocking_copy_ns()
-- Sum of their durations.
RETURNS LONG AS
SELECT
  coalesce(sum(dur), 0)
FROM perfdiag_blocking_copy;

-- Time of the collectives of one operation.
CREATE PERFETTO FUNCTION perfdiag_collective_ns(
  -- Operation, as `perfdiag_collective.op`.
  op STRING,
  -- Lane: `perfdiag_lane.lane_id`.
  lane_id LONG
)
-- Sum of their durations.
RETURNS LONG AS
SELECT
  coalesce(sum(work.dur), 0)
FROM perfdiag_collective AS collective
JOIN _perfdiag_work AS work USING (id)
WHERE
  collective.op = $op AND work.lane_id = $lane_id;

-- Number of the collectives of one operation.
CREATE PERFETTO FUNCTION perfdiag_collective_count(
  -- Operation, as `perfdiag_collective.op`.
  op STRING,
  -- Lane: `perfdiag_lane.lane_id`.
  lane_id LONG
)
-- How many there are.
RETURNS LONG AS
SELECT
  count(*)
FROM perfdiag_collective AS collective
JOIN _perfdiag_work AS work USING (id)
WHERE
  collective.op = $op AND work.lane_id = $lane_id;
