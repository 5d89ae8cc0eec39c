WITH windows AS (
    SELECT w AS window_start, w + INTERVAL 60 MINUTES AS window_end
    FROM generate_series(TIMESTAMP '2011-04-30 22:00:00', TIMESTAMP '2011-05-01 02:00:00', INTERVAL 30 MINUTES) AS t(w)
)
SELECT window_start, window_end, scheduling_class, AVG(cpu) AS cpu
FROM windows JOIN read_csv('../input/tasks.csv') ON ts >= window_start AND ts < window_end
GROUP BY ALL
ORDER BY window_end, scheduling_class;
