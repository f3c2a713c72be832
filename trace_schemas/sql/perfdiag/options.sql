-- What the user says of a foreign trace. perfdiag registers this module with the numbers of the
-- tracks whose names match `--device-track` in place of the empty text.

-- Tracks that the user calls device lanes.
CREATE PERFETTO TABLE _option_device_track(
  -- Track.
  track_id LONG
) AS
SELECT
  id AS track_id
FROM track
WHERE
  instr('', '|' || id || '|');
