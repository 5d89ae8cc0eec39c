WITH durations AS (
    SELECT ts, src, district, date_diff('second', start_time, end_time) AS seconds FROM read_csv('../input/calls.csv')
), windows AS (
    SELECT w + INTERVAL 10 MINUTES AS window_end, w AS window_start
    FROM generate_series(TIMESTAMP '2012-01-02 09:00:00', TIMESTAMP '2012-01-02 11:00:00', INTERVAL 2 MINUTES) AS t(w)
), heavy AS (
    SELECT window_end - INTERVAL 1 MICROSECOND AS ts, src, AVG(seconds) AS mean
    FROM windows JOIN durations ON ts >= window_start AND ts < window_end
    GROUP BY window_end, src
    HAVING AVG(seconds) > 100
), met AS (
    SELECT d.ts, d.district, d.seconds, h.mean
    FROM heavy AS h JOIN durations AS d
    ON h.src = d.src AND h.ts <= d.ts AND epoch_us(d.ts) - epoch_us(h.ts) <= 119000000
)
SELECT time_bucket(INTERVAL 5 MINUTES, ts) AS window_start, time_bucket(INTERVAL 5 MINUTES, ts) + INTERVAL 5 MINUTES AS window_end,
       district, COUNT(*) AS calls, SUM(seconds)::BIGINT AS seconds, MAX(mean) AS heaviest
FROM met
GROUP BY ALL
ORDER BY window_end, district;
