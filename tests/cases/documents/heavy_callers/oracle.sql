WITH windows AS (
    SELECT w AS window_start, w + INTERVAL 1 HOUR AS window_end
    FROM generate_series(TIMESTAMP '2012-01-02 08:00:00', TIMESTAMP '2012-01-02 12:00:00', INTERVAL 1 MINUTE) AS t(w)
), durations AS (
    SELECT ts, src, date_diff('second', start_time, end_time) AS seconds FROM read_csv('../input/calls.csv')
)
SELECT window_start, window_end, src, AVG(seconds) AS seconds, COUNT(*) AS calls
FROM windows JOIN durations ON ts >= window_start AND ts < window_end
GROUP BY ALL
HAVING AVG(seconds) > 130
ORDER BY window_end, src;
