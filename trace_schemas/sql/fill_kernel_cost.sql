-- Runs in a session that includes `perfdiag.kernel_cost`: rows take the place of its empty table.
-- perfdiag puts the texts in place of the three that are here.
CREATE OR REPLACE PERFETTO TABLE _kernel_cost AS
SELECT
  *
FROM _kernel_costs('rows', 'peak_device', 'peak_basis');
