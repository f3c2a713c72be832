-- What kernels compute and move by the recorded inputs of their operators, and how near they come
-- to the roofs of their device. SQL alone cannot say that: `perfdiag query` fills these tables when
-- a statement asks for them. They are empty where no inputs were recorded or the device is not
-- known, and elsewhere than in perfdiag.

INCLUDE PERFETTO MODULE perfdiag.model;

-- Rows of costs from the text in which perfdiag hands them over.
CREATE PERFETTO FUNCTION _kernel_costs(
  -- JSON: a list of rows, each with the values of the columns in their order.
  told STRING,
  -- Name of the device whose roofs these are.
  peak_device STRING,
  -- What the roofs are.
  peak_basis STRING
)
-- The rows.
RETURNS TABLE (
  -- Device work.
  id LONG,
  -- Operator that told.
  host_op_id LONG,
  -- FLOPs.
  flops DOUBLE,
  -- Bytes.
  bytes DOUBLE,
  -- Written ones.
  written_bytes DOUBLE,
  -- Type.
  dtype STRING,
  -- Share of the compute roof.
  compute_share DOUBLE,
  -- Share of the memory roof.
  memory_share DOUBLE,
  -- Bound.
  bound STRING,
  -- Bound by the data sheet.
  at_datasheet STRING,
  -- Where the cost is from.
  source STRING,
  -- Device of the roofs.
  peak_device STRING,
  -- Basis of the roofs.
  peak_basis STRING
) AS
SELECT
  value ->> 0 AS id,
  value ->> 1 AS host_op_id,
  value ->> 2 AS flops,
  value ->> 3 AS bytes,
  value ->> 4 AS written_bytes,
  value ->> 5 AS dtype,
  value ->> 6 AS compute_share,
  value ->> 7 AS memory_share,
  value ->> 8 AS bound,
  value ->> 9 AS at_datasheet,
  value ->> 10 AS source,
  $peak_device AS peak_device,
  $peak_basis AS peak_basis
FROM json_each($told);

-- The rows that were handed over: none, until perfdiag puts others in the place of this table.
CREATE PERFETTO TABLE _kernel_cost(
  -- Device work.
  id LONG,
  -- Operator that told.
  host_op_id LONG,
  -- FLOPs.
  flops DOUBLE,
  -- Bytes.
  bytes DOUBLE,
  -- Written ones.
  written_bytes DOUBLE,
  -- Type.
  dtype STRING,
  -- Share of the compute roof.
  compute_share DOUBLE,
  -- Share of the memory roof.
  memory_share DOUBLE,
  -- Bound.
  bound STRING,
  -- Bound by the data sheet.
  at_datasheet STRING,
  -- Where the cost is from.
  source STRING,
  -- Device of the roofs.
  peak_device STRING,
  -- Basis of the roofs.
  peak_basis STRING
) AS
SELECT
  *
FROM _kernel_costs('[]', '', '');

-- Kernels under the roofs of their device, collectives apart. Those of which no cost is known are
-- there too, with `bound` unknown and without figures.
CREATE PERFETTO VIEW perfdiag_kernel_cost(
  -- The kernel: `perfdiag_device_op.id`.
  id LONG,
  -- The kernel, to join `perfdiag_device_op` by name.
  device_op_id LONG,
  -- Operator whose inputs told the cost: `perfdiag_host_op.id`; NULL where none did.
  host_op_id LONG,
  -- Floating-point operations.
  flops DOUBLE,
  -- Bytes read and written.
  bytes DOUBLE,
  -- Bytes written.
  written_bytes DOUBLE,
  -- Type whose peak bounds the arithmetic, NULL where there is none.
  dtype STRING,
  -- FLOPs a byte, NULL where nothing is moved.
  intensity DOUBLE,
  -- FLOPs a second.
  flops_per_s DOUBLE,
  -- Bytes a second.
  bytes_per_s DOUBLE,
  -- Share of the roof of arithmetic that is reached.
  compute_share DOUBLE,
  -- Share of the roof of memory that is reached.
  memory_share DOUBLE,
  -- `compute`, `memory`, `under-filled`, `above peak` or `unknown`. What is above a peak is not
  -- believed: leave it out of sums.
  bound STRING,
  -- The same by the roofs of the data sheet.
  at_datasheet STRING,
  -- `shapes`: by the operator's inputs; `counters`: FLOPs or bytes were counted; NULL: unknown.
  source STRING,
  -- Device whose roofs these are.
  peak_device STRING,
  -- Roofs: `achievable` or `datasheet`.
  peak_basis STRING
) AS
SELECT
  cost.id,
  cost.id AS device_op_id,
  cost.host_op_id,
  cost.flops,
  cost.bytes,
  cost.written_bytes,
  cost.dtype,
  cost.flops / nullif(cost.bytes, 0) AS intensity,
  cost.flops * 1e9 / max(slice.dur, 1) AS flops_per_s,
  cost.bytes * 1e9 / max(slice.dur, 1) AS bytes_per_s,
  cost.compute_share,
  cost.memory_share,
  cost.bound,
  cost.at_datasheet,
  cost.source,
  cost.peak_device,
  cost.peak_basis
FROM _kernel_cost AS cost
JOIN slice ON slice.id = cost.id;

-- Share of the roof of arithmetic that kernels of one name reach on a device, over their time.
CREATE PERFETTO FUNCTION perfdiag_kernel_compute_share(
  -- Device ordinal, -1 where the trace names none.
  device_id LONG,
  -- Name of the kernels.
  name STRING
)
-- The mean, weighted by duration, of those with a cost that can be true; NULL without any.
RETURNS DOUBLE AS
SELECT
  sum(cost.compute_share * work.dur) / sum(work.dur)
FROM perfdiag_kernel_cost AS cost
JOIN _perfdiag_work AS work ON work.id = cost.device_op_id
WHERE
  coalesce(work.device_id, -1) = $device_id
  AND work.name = $name
  AND NOT cost.bound IN ('unknown', 'above peak');
