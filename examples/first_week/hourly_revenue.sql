-- How many rides were there each hour, and what did they earn?
-- Run: tidegate run examples/first_week/hourly_revenue.sql --master none
CREATE STREAM rides FROM 'generator:taxi?rows=20000&rate=2&keys=200' TIME dropoff_time;
SELECT payment, COUNT(*) AS rides, ROUND(SUM(fare + tip), 2) AS earned
FROM rides [RANGE 1 HOUR]
GROUP BY payment;
