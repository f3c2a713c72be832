-- What the user says of a foreign trace. Empty here; perfdiag registers the module anew with
-- what was given on the command line.

-- Tracks that the user calls device lanes.
CREATE PERFETTO TABLE _option_device_track(
  -- Track.
  track_id LONG
) AS
SELECT
  0 AS track_id
WHERE
  FALSE;
