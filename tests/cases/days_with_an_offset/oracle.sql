WITH windows AS (
    SELECT w AS window_start, w + INTERVAL 2 DAYS AS window_end
    FROM generate_series(TIMESTAMP '1969-12-20 05:00:00', TIMESTAMP '1970-01-10 05:00:00', INTERVAL 1 DAY) AS t(w)
)
SELECT window_start, window_end, COUNT(*) AS n, SUM(fare)::BIGINT AS fare
FROM windows JOIN read_csv('trips.csv') ON ts >= window_start AND ts < window_end
GROUP BY ALL
ORDER BY window_end;
