WITH windows AS (
    SELECT make_timestamp(k * 15000000) AS window_start, make_timestamp(k * 15000000 + 20000000) AS window_end
    FROM range(-10, 10) AS t(k)
)
SELECT window_start, window_end, craft, SUM(v)::BIGINT AS v, COUNT(*) AS n
FROM windows JOIN read_csv('moon.csv') ON ts >= window_start AND ts < window_end
GROUP BY ALL
ORDER BY window_end, craft;
