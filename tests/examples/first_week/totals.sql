SELECT window_start, window_start + INTERVAL 1 HOUR AS window_end,
       payment, pickup_cell, COUNT(*) AS rides, ROUND(SUM(fare), 2) AS fares
FROM (SELECT *, time_bucket(INTERVAL 1 HOUR, dropoff_time) AS window_start FROM rides)
GROUP BY window_start, ROLLUP (payment, pickup_cell)
ORDER BY window_end, payment NULLS FIRST, pickup_cell NULLS FIRST;
