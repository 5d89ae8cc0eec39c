WITH windows AS (
    SELECT w AS window_start, w + INTERVAL 15 MINUTES AS window_end
    FROM generate_series(TIMESTAMP '2024-05-01 09:00:00', TIMESTAMP '2024-05-01 12:00:00', INTERVAL 5 MINUTES) AS t(w)
)
SELECT window_start, window_end, route, AVG(fare) AS fare, COUNT(*) AS n, SUM(tip)::BIGINT AS tips
FROM windows JOIN read_csv('rides.csv') AS rides
  ON dropoff_time >= window_start AND dropoff_time < window_end
WHERE fare > 0
GROUP BY ALL
ORDER BY window_end, route;
