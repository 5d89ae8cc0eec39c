WITH windows AS (
    SELECT w AS window_start, w + INTERVAL 30 MINUTES AS window_end
    FROM generate_series(TIMESTAMP '2013-01-01 07:00:00', TIMESTAMP '2013-01-01 10:00:00', INTERVAL 5 MINUTES) AS t(w)
)
SELECT window_start, window_end, pickup_cell, dropoff_cell, COUNT(*) AS rides
FROM windows JOIN read_csv(['../input/rides1.csv', '../input/rides2.csv'])
ON dropoff_time >= window_start AND dropoff_time < window_end
GROUP BY window_start, window_end, pickup_cell, dropoff_cell
QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY COUNT(*) DESC, pickup_cell, dropoff_cell) <= 10
ORDER BY window_end, rides DESC, pickup_cell, dropoff_cell;
