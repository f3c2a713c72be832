-- Anybody's TrackEvents and GPU render stages as lanes, slices and links, by names that are
-- common: those of JAX (`/device:TPU:0`, `XLA Ops`, `Stream #17(Kernel)`), rocprofv3
-- (`COMPUTE ... QUEUE [1]`, `STREAM [3]`, `COPY to AGENT [4]`) and of what people write with
-- Perfetto's SDK (`GPU 0`, `stream 7`). Empty for canonical traces.

INCLUDE PERFETTO MODULE perfdiag.canonical;

INCLUDE PERFETTO MODULE perfdiag.options;

-- Tracks with slices, and every name that may say what they are.
CREATE PERFETTO TABLE _adapter_name(
  -- Track.
  track_id LONG,
  -- Type that the trace processor gives it.
  type STRING,
  -- Own name, that of the thread on a thread's track.
  name STRING,
  -- Name of the track above it.
  parent STRING,
  -- Name of the track above that.
  grandparent STRING,
  -- Name of the process.
  process STRING,
  -- All of these in lower case, its own first.
  label STRING,
  -- Process, NULL where it belongs to none.
  upid LONG,
  -- Thread, NULL where it belongs to none.
  utid LONG,
  -- Hardware queue of render stages.
  hw_queue LONG
) AS
WITH
  above AS (
    SELECT
      track.id,
      track.type,
      track.name,
      parent.name AS parent,
      grandparent.name AS grandparent,
      coalesce(
        extract_arg(track.dimension_arg_set_id, 'upid'),
        extract_arg(parent.dimension_arg_set_id, 'upid'),
        extract_arg(grandparent.dimension_arg_set_id, 'upid')
      ) AS upid,
      coalesce(
        extract_arg(track.dimension_arg_set_id, 'utid'),
        extract_arg(parent.dimension_arg_set_id, 'utid')
      ) AS utid,
      extract_arg(track.dimension_arg_set_id, 'hwqueue_id') AS hw_queue
    FROM track
    LEFT JOIN track AS parent ON parent.id = track.parent_id
    LEFT JOIN track AS grandparent ON grandparent.id = parent.parent_id
    WHERE
      track.id IN (
        SELECT
          track_id
        FROM slice
        WHERE
          NOT EXISTS (
            SELECT
              1
            FROM _canonical_rank
          )
      )
  )
SELECT
  above.id AS track_id,
  above.type,
  coalesce(above.name, thread.name, '') AS name,
  coalesce(above.parent, '') AS parent,
  coalesce(above.grandparent, '') AS grandparent,
  coalesce(process.name, '') AS process,
  lower(
    coalesce(above.name, thread.name, '') || '|' || coalesce(above.parent, '') || '|' || coalesce(above.grandparent, '') || '|' || coalesce(process.name, '')
  ) AS label,
  process.upid,
  thread.utid,
  above.hw_queue
FROM above
LEFT JOIN thread ON thread.utid = above.utid
LEFT JOIN process ON process.upid = coalesce(above.upid, thread.upid);

-- What each track shows, as far as its names tell.
CREATE PERFETTO TABLE _adapter_role(
  -- Track.
  track_id LONG,
  -- `work`, `mark` or `step` on a device, `host`, or `unknown`.
  role STRING
) AS
SELECT
  track_id,
  CASE
    WHEN track_id IN (SELECT track_id FROM _option_device_track)
    OR type = 'gpu_render_stage' THEN 'work'
    WHEN process GLOB '/host:*' THEN 'host'
    WHEN process GLOB '/device:*' AND name = 'Steps' THEN 'step'
    -- Lines that XLA's profiler derives: the same time once more, by other names.
    WHEN name IN (
      'XLA Modules', 'XLA TraceMe', 'Framework Ops', 'Framework Name Scope', 'Source code',
      'Launch Stats'
    ) THEN 'mark'
    WHEN process GLOB '/device:*' OR name IN ('XLA Ops', 'Async XLA Ops') THEN 'work'
    WHEN lower(process) REGEXP '^(gpu|cuda|tpu|npu|xpu|hpu|mtia|neuroncore)[ :#]*[0-9]+$' THEN 'work'
    WHEN lower(name) REGEXP '^(hw |compute |gpu |cuda )?(stream|queue)[ :#]*.?[0-9]' THEN 'work'
    WHEN lower(name) REGEXP '^(gpu|cuda|tpu|npu|xpu|hpu|mtia|neuroncore)[ :#]*[0-9]+$' THEN 'work'
    WHEN lower(name) REGEXP '^compute .*queue|^copy to agent' THEN 'work'
    WHEN utid IS NOT NULL OR lower(name) REGEXP '^thread -?[0-9]' THEN 'host'
    -- A thread may be called after its device, a track of no thread is that of the device.
    WHEN label REGEXP '(^|[^a-z])(gpu|cuda|tpu|npu|xpu|hpu|mtia|neuroncore)[ :#]*[0-9]' THEN 'work'
    ELSE 'unknown'
  END AS role
FROM _adapter_name;

-- Slices with the id that joins a launch to its device work.
CREATE PERFETTO TABLE _adapter_event(
  -- Slice.
  id LONG,
  -- Track.
  track_id LONG,
  -- Role of the track.
  role STRING,
  -- Process of the track, NULL where it belongs to none.
  upid LONG,
  -- Start.
  ts TIMESTAMP,
  -- Id, by the names that writers give it; NULL where it has none.
  correlation LONG
) AS
SELECT
  slice.id,
  slice.track_id,
  role.role,
  name.upid,
  slice.ts,
  cast_int!(
    coalesce(
      extract_arg(slice.arg_set_id, 'debug.correlation'),
      extract_arg(slice.arg_set_id, 'debug.correlation_id'),
      extract_arg(slice.arg_set_id, 'debug.correlationId'),
      extract_arg(slice.arg_set_id, 'debug.corr_id'),
      extract_arg(slice.arg_set_id, 'args.correlation'),
      extract_arg(slice.arg_set_id, 'args.correlation_id'),
      extract_arg(slice.arg_set_id, 'correlation_id')
    )
  ) AS correlation
FROM _adapter_role AS role
JOIN _adapter_name AS name USING (track_id)
JOIN slice ON slice.track_id = role.track_id;

CREATE PERFETTO INDEX _adapter_event_id ON _adapter_event(id);

CREATE PERFETTO INDEX _adapter_event_correlation ON _adapter_event(correlation);

-- Launches by flow: from a slice on no device to one on a device, and on to others with the
-- same flow id.
CREATE PERFETTO TABLE _adapter_flow(
  -- Device slice.
  id LONG,
  -- Slice that launched it.
  launch_id LONG
) AS
WITH
  RECURSIVE
  reached(
    id,
    launch_id,
    trace_id
  ) AS (
    SELECT
      flow.slice_in,
      flow.slice_out,
      flow.trace_id
    FROM flow
    JOIN _adapter_event AS call ON call.id = flow.slice_out
    JOIN _adapter_event AS work ON work.id = flow.slice_in
    WHERE
      call.role IN ('host', 'unknown')
      AND work.role = 'work'
    UNION
    SELECT
      flow.slice_in,
      reached.launch_id,
      flow.trace_id
    FROM reached
    JOIN flow ON flow.slice_out = reached.id AND flow.trace_id = reached.trace_id
    JOIN _adapter_event AS work ON work.id = flow.slice_in
    WHERE
      work.role = 'work'
  )
SELECT
  id,
  min(launch_id) AS launch_id
FROM reached
GROUP BY
  id;

CREATE PERFETTO INDEX _adapter_flow_id ON _adapter_flow(id);

-- Launches by id: of the slices with the id the first, one of the same process if there is one.
CREATE PERFETTO TABLE _adapter_same_id(
  -- Device slice.
  id LONG,
  -- Slice that launched it.
  launch_id LONG
) AS
WITH
  candidate AS (
    SELECT
      work.id,
      call.id AS launch_id,
      row_number() OVER (
        PARTITION BY work.id
        ORDER BY call.upid IS NOT work.upid, call.ts, call.id
      ) AS place
    FROM _adapter_event AS work
    JOIN _adapter_event AS call USING (correlation)
    WHERE
      work.role = 'work'
      AND call.role IN ('host', 'unknown')
  )
SELECT
  id,
  launch_id
FROM candidate
WHERE
  place = 1;

CREATE PERFETTO INDEX _adapter_same_id_id ON _adapter_same_id(id);

-- Device slices and what launched them: flows are exact, ids are unique only in one process.
CREATE PERFETTO TABLE _adapter_link(
  -- Device slice.
  id LONG,
  -- Slice that launched it.
  launch_id LONG
) AS
SELECT
  work.id,
  coalesce(flow.launch_id, same_id.launch_id) AS launch_id
FROM _adapter_event AS work
LEFT JOIN _adapter_flow AS flow USING (id)
LEFT JOIN _adapter_same_id AS same_id USING (id)
WHERE
  work.role = 'work'
  AND coalesce(flow.launch_id, same_id.launch_id) IS NOT NULL;

CREATE PERFETTO INDEX _adapter_link_id ON _adapter_link(id);

-- Lanes, one row for each track that shows one.
CREATE PERFETTO TABLE _adapter_track(
  -- Track.
  track_id LONG,
  -- Lane: a thread, or the tracks that share a name and what is above them.
  lane_id LONG,
  -- `work`, `mark` or `step` on a device, `host`, or `unknown`.
  role STRING,
  -- `thread` or `stream`.
  kind STRING,
  -- Name for people.
  name STRING,
  -- Process id, or the name of the process or of what is above the track.
  process STRING,
  -- Thread id or name.
  thread STRING,
  -- Device ordinal, NULL on the host.
  device_id LONG,
  -- Stream number, NULL on the host.
  stream LONG
) AS
WITH
  settled AS (
    SELECT
      name.*,
      -- What launches device work is a host thread, whatever its name.
      iif(
        role.role = 'unknown'
        AND role.track_id IN (
          SELECT
            call.track_id
          FROM _adapter_link AS link
          JOIN _adapter_event AS call ON call.id = link.launch_id
        ),
        'host',
        role.role
      ) AS role
    FROM _adapter_name AS name
    JOIN _adapter_role AS role USING (track_id)
  )
SELECT
  track_id,
  dense_rank() OVER (
    ORDER BY
      role IN ('work', 'mark', 'step'),
      settled.upid,
      settled.utid,
      label
  ) - 1 AS lane_id,
  role,
  iif(role IN ('work', 'mark', 'step'), 'stream', 'thread') AS kind,
  settled.name,
  coalesce(
    cast_string!(process.pid),
    nullif(settled.process, ''),
    nullif(settled.parent, ''),
    ''
  ) AS process,
  coalesce(cast_string!(thread.tid), settled.name) AS thread,
  iif(
    role IN ('work', 'mark', 'step'),
    cast_int!(
      coalesce(
        regexp_extract(label, '[gtnxh]pu[ :#]*([0-9]+)'),
        regexp_extract(label, 'cuda[ :#]*([0-9]+)'),
        regexp_extract(label, 'device[ :#]*([0-9]+)'),
        regexp_extract(label, 'agent ?[^0-9]?([0-9]+)'),
        regexp_extract(label, '^compute .*[^0-9]([0-9]+). queue'),
        regexp_extract(label, 'mtia[ :#]*([0-9]+)'),
        regexp_extract(label, 'core[ :#]*([0-9]+)'),
        '0'
      )
    ),
    NULL
  ) AS device_id,
  iif(
    role IN ('work', 'mark', 'step'),
    cast_int!(
      coalesce(
        regexp_extract(label, 'stream[ :#]*[^0-9]?([0-9]+)'),
        regexp_extract(label, 'queue[ :#]*[^0-9]?([0-9]+)'),
        hw_queue,
        0
      )
    ),
    NULL
  ) AS stream
FROM settled
LEFT JOIN process USING (upid)
LEFT JOIN thread USING (utid);

CREATE PERFETTO INDEX _adapter_track_track ON _adapter_track(track_id);

-- What names and categories tell, each pair once: patterns are slow.
CREATE PERFETTO TABLE _adapter_text(
  -- Name of slices.
  name STRING,
  -- Their category.
  category STRING,
  -- Kind of such a slice on a device.
  device_kind STRING,
  -- Kind of such a slice on a host thread.
  host_kind STRING,
  -- Whether it marks a step.
  is_step BOOL
) AS
WITH
  pair AS (
    SELECT DISTINCT
      coalesce(slice.name, '') AS name,
      coalesce(slice.category, '') AS category
    FROM _adapter_track
    JOIN slice USING (track_id)
  ),
  labelled AS (
    SELECT
      *,
      lower(category || '|' || name) AS label
    FROM pair
  )
SELECT
  name,
  category,
  CASE
    WHEN label REGEXP '[nr]ccl|all[-_]?(reduce|gather|to[-_]?all)|reduce[-_]?scatter|collective[-_]permute' THEN 'collective'
    WHEN label REGEXP 'memcpy|memory_copy|copybuffer' THEN 'copy'
    WHEN label REGEXP 'memset|fillbuffer' THEN 'fill'
    ELSE 'kernel'
  END AS device_kind,
  CASE
    WHEN category REGEXP 'runtime|driver|^h(ip|sa)_api' THEN 'runtime'
    WHEN name REGEXP '^(cuda|hip|cu|nrt|zeCommand|hsa)_?[A-Z]' THEN 'runtime'
    WHEN category GLOB 'python*' THEN 'python'
    WHEN category REGEXP 'annotation|marker|nvtx|roctx' THEN 'annotation'
    ELSE 'host_op'
  END AS host_kind,
  lower(name) REGEXP '^((train|eval|training|global)[ _])?(profiler)?(step|iteration|iter|batch|stepmarker)[ _:]*#?[ ]?[0-9]+(/[0-9]+)?$|^train[ #][0-9]+$' AS is_step
FROM labelled;

CREATE PERFETTO INDEX _adapter_text_name ON _adapter_text(name);

-- Slices with their kind.
CREATE PERFETTO TABLE _adapter_slice(
  -- Slice.
  id LONG,
  -- Lane.
  lane_id LONG,
  -- Device ordinal, NULL on the host.
  device_id LONG,
  -- Start.
  ts TIMESTAMP,
  -- Duration, -1 where the slice never ends.
  dur DURATION,
  -- Name.
  name STRING,
  -- Category as the source writes it.
  category STRING,
  -- Kind, as in canonical traces; `other` where the role of the track is not known.
  kind STRING,
  -- Whether it marks a step.
  is_step BOOL,
  -- Id that joins a launch to its device work, as the source writes it.
  correlation LONG,
  -- Slice that launched it, of device work.
  launch_id LONG,
  -- Enclosing slice of its track.
  parent_id LONG,
  -- Arguments.
  arg_set_id LONG
) AS
WITH
  launcher AS (
    SELECT DISTINCT
      launch_id
    FROM _adapter_link
  )
SELECT
  slice.id,
  track.lane_id,
  track.device_id,
  slice.ts,
  slice.dur,
  text.name,
  text.category,
  CASE
    WHEN track.role IN ('mark', 'step') THEN 'device_annotation'
    WHEN track.role = 'work' AND track.name GLOB 'COPY to AGENT*' THEN 'copy'
    WHEN track.role = 'work' THEN text.device_kind
    WHEN launcher.launch_id IS NOT NULL THEN 'runtime'
    WHEN track.role = 'unknown' THEN 'other'
    ELSE text.host_kind
  END AS kind,
  text.is_step,
  event.correlation,
  link.launch_id,
  slice.parent_id,
  slice.arg_set_id
FROM _adapter_track AS track
JOIN slice USING (track_id)
JOIN _adapter_event AS event ON event.id = slice.id
JOIN _adapter_text AS text
  ON text.name = coalesce(slice.name, '') AND text.category = coalesce(slice.category, '')
LEFT JOIN _adapter_link AS link ON link.id = slice.id
LEFT JOIN launcher ON launcher.launch_id = slice.id;

CREATE PERFETTO INDEX _adapter_slice_id ON _adapter_slice(id);

-- Device work by its launch.
CREATE PERFETTO TABLE _adapter_launched(
  -- Start of the launch.
  launch_ts TIMESTAMP,
  -- End of the work.
  ends TIMESTAMP
) AS
SELECT
  call.ts AS launch_ts,
  work.ts + work.dur AS ends
FROM _adapter_slice AS work
JOIN _adapter_slice AS call ON call.id = work.launch_id
WHERE
  work.dur >= 0;

CREATE PERFETTO INDEX _adapter_launched_ts ON _adapter_launched(launch_ts);

-- Steps that the host or XLA's profiler marks, in order.
CREATE PERFETTO TABLE _adapter_step(
  -- Slice of the marker.
  id LONG,
  -- Number within the trace, from 0.
  ordinal LONG,
  -- Name of the marker.
  name STRING,
  -- Start on the host.
  host_ts TIMESTAMP,
  -- Length on the host.
  host_dur DURATION,
  -- Start of the window: the previous step's completion.
  ts TIMESTAMP,
  -- Length of the window, to the step's own completion.
  dur DURATION
) AS
WITH
  marker AS (
    SELECT
      slice.id,
      slice.lane_id,
      slice.name,
      slice.ts,
      slice.dur,
      slice.kind != 'device_annotation' AS on_host
    FROM _adapter_slice AS slice
    WHERE
      slice.dur > 0
      AND (
        slice.lane_id IN (
          SELECT
            lane_id
          FROM _adapter_track
          WHERE
            role = 'step'
        )
        OR (
          slice.kind IN ('host_op', 'annotation', 'other')
          AND slice.is_step
        )
      )
  ),
  -- Of several lanes with markers, those of the host count, then the one with most.
  lane AS (
    SELECT
      lane_id
    FROM marker
    GROUP BY
      lane_id
    ORDER BY
      max(on_host) DESC,
      count(*) DESC,
      lane_id
    LIMIT 1
  ),
  completed AS (
    SELECT
      marker.id,
      marker.name,
      marker.ts,
      marker.dur,
      max(
        marker.ts + marker.dur,
        coalesce(
          (
            SELECT
              max(work.ends)
            FROM _adapter_launched AS work
            WHERE
              work.launch_ts >= marker.ts
              AND work.launch_ts < marker.ts + marker.dur
          ),
          0
        )
      ) AS done
    FROM marker
    JOIN lane USING (lane_id)
  )
SELECT
  id,
  row_number() OVER (
    ORDER BY ts, id
  ) - 1 AS ordinal,
  name,
  ts AS host_ts,
  dur AS host_dur,
  coalesce(lag(done) OVER (ORDER BY ts, id), ts) AS ts,
  max(done - coalesce(lag(done) OVER (ORDER BY ts, id), ts), 0) AS dur
FROM completed;

-- Samples of counters.
CREATE PERFETTO VIEW _adapter_sample(
  -- Sample.
  id LONG,
  -- Track.
  track_id LONG,
  -- Device ordinal, NULL where the names tell of none.
  device_id LONG,
  -- Name of the counter.
  name STRING,
  -- Unit of the values.
  unit STRING,
  -- Time of the sample.
  ts TIMESTAMP,
  -- Value.
  value DOUBLE
) AS
SELECT
  counter.id,
  counter.track_id,
  cast_int!(
    coalesce(
      regexp_extract(
        lower(coalesce(track.name, '') || '|' || coalesce(parent.name, '')),
        '[gtnxh]pu[ :#]*([0-9]+)'
      ),
      extract_arg(track.dimension_arg_set_id, 'gpu')
    )
  ) AS device_id,
  coalesce(track.name, '') AS name,
  coalesce(track.unit, '') AS unit,
  counter.ts,
  counter.value
FROM counter
JOIN counter_track AS track ON track.id = counter.track_id
JOIN track AS own ON own.id = counter.track_id
LEFT JOIN track AS parent ON parent.id = own.parent_id
WHERE
  NOT EXISTS (
    SELECT
      1
    FROM _canonical_rank
  );

-- What the reader must know about the mapping.
CREATE PERFETTO VIEW _adapter_notice(
  -- Kind, as the documentation lists them.
  kind STRING,
  -- `error`, `warning` or `info`.
  severity STRING,
  -- Tracks or slices concerned.
  count LONG,
  -- A sentence.
  message STRING
) AS
SELECT
  'track.unmapped' AS kind,
  'warning' AS severity,
  count(*) AS count,
  'Tracks that are neither host nor device: ' || group_concat(DISTINCT name) || '.' AS message
FROM _adapter_track
WHERE
  role = 'unknown'
HAVING
  count(*) > 0
UNION ALL
SELECT
  'slice.unfinished' AS kind,
  'warning' AS severity,
  count(*) AS count,
  'Slices that never end: not counted as work.' AS message
FROM _adapter_slice
WHERE
  dur < 0
HAVING
  count(*) > 0;
