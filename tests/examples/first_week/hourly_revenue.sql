SELECT time_bucket(INTERVAL 1 HOUR, dropoff_time) AS window_start, window_start + INTERVAL 1 HOUR AS window_end,
       payment, COUNT(*) AS rides, ROUND(SUM(fare + tip), 2) AS earned
FROM rides GROUP BY ALL ORDER BY window_end, payment;
