WITH tuples AS (
    SELECT id, ts, v, MAX(ts) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS newest
    FROM read_csv('a.csv')
    UNION ALL
    SELECT id, ts, v, MAX(ts) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    FROM read_csv('b.csv')
), windows AS (
    SELECT w AS window_start, w + INTERVAL 10 SECONDS AS window_end
    FROM generate_series(TIMESTAMP '2023-12-31 23:59:00', TIMESTAMP '2024-01-01 00:01:00', INTERVAL 5 SECONDS) AS t(w)
)
SELECT window_start, window_end, COUNT(*) AS n, SUM(v)::BIGINT AS v,
       FIRST(id ORDER BY ts, id) AS first, LAST(id ORDER BY ts, id) AS last
FROM windows JOIN tuples ON ts >= window_start AND ts < window_end
WHERE newest IS NULL OR ts >= newest - INTERVAL 5 SECONDS
GROUP BY ALL
ORDER BY window_end;
