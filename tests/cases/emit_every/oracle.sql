WITH windows AS (
    SELECT w AS window_start, w + INTERVAL 30 MINUTES AS window_end
    FROM generate_series(TIMESTAMP '2024-05-01 09:00:00', TIMESTAMP '2024-05-01 12:00:00', INTERVAL 15 MINUTES) AS t(w)
), given AS (
    SELECT *, mark = window_end AS final
    FROM windows JOIN (
        SELECT mark FROM generate_series(TIMESTAMP '2024-05-01 09:00:00', TIMESTAMP '2024-05-01 13:00:00', INTERVAL 5 MINUTES) AS t(mark)
    ) ON mark > window_start AND mark <= window_end
    WHERE mark = window_end OR epoch(mark) % 600 = 0
)
SELECT window_start, window_end, route, COUNT(*) AS n, AVG(fare) AS fare, final
FROM given JOIN read_csv('rides.csv') AS rides
  ON dropoff_time >= window_start AND dropoff_time < mark
GROUP BY mark, window_start, window_end, final, route
HAVING AVG(fare) > 1 AND (final OR MAX(dropoff_time) >= mark - INTERVAL 10 MINUTES)
ORDER BY mark, final, window_end, route;
