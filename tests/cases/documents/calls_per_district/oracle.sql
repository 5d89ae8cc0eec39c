WITH windows AS (
    SELECT w AS window_start, w + INTERVAL 1 MINUTE AS window_end
    FROM generate_series(TIMESTAMP '2012-01-02 09:40:00', TIMESTAMP '2012-01-02 10:30:00', INTERVAL 10 SECONDS) AS t(w)
)
SELECT window_start, window_end, district, COUNT(*) AS calls, AVG(date_diff('second', start_time, end_time)) AS seconds
FROM windows JOIN read_csv('../input/calls.csv') ON ts >= window_start AND ts < window_end
GROUP BY ALL
ORDER BY window_end, district;
