WITH tuples AS (
    SELECT ts, page, ms::DOUBLE AS ms, 'web' AS place, 0 AS stream FROM read_csv('web.csv')
    UNION ALL
    SELECT seen::TIMESTAMPTZ AT TIME ZONE 'UTC', screen, seconds * 1000, 'app', 1
    FROM read_json('app.json', columns = {seen: 'VARCHAR', screen: 'VARCHAR', seconds: 'DOUBLE'})
), windows AS (
    SELECT w AS window_start, w + INTERVAL 10 SECONDS AS window_end
    FROM generate_series(TIMESTAMP '2024-02-29 23:59:00', TIMESTAMP '2024-03-01 00:01:00', INTERVAL 5 SECONDS) AS t(w)
)
SELECT window_start, window_end, page, COUNT(*) AS n, SUM(ms) AS ms,
       FIRST(place ORDER BY ts, stream) AS first, LAST(place ORDER BY ts, stream) AS last
FROM windows JOIN tuples ON ts >= window_start AND ts < window_end
WHERE page IS NULL OR page <> 'pay' OR ms > 1000
GROUP BY ALL
ORDER BY window_end, page NULLS FIRST;
