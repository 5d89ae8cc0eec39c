-- The ten busiest taxi routes of the last 15 minutes, every 5 minutes.
--
-- Shows: a sliding window, WHERE, GROUP BY, and ORDER BY ... LIMIT, which apply to each window.
-- Run:   tidegate run examples/top_routes.sql --master none
-- Then:  leave --master none out for Spark; --instances 7 or --batch-rows 5000 give the same rows.

CREATE STREAM rides FROM 'generator:taxi?rows=50000&rate=10' TIME dropoff_time;

SELECT route, COUNT(*) AS rides, ROUND(AVG(fare), 2) AS fare
FROM rides [RANGE 15 MINUTES SLIDE 5 MINUTES]
WHERE fare > 0
GROUP BY route
ORDER BY rides DESC LIMIT 10;
