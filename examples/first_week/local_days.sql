-- How many rides does each day in New York have?
-- Run: tidegate run examples/first_week/local_days.sql --master none
CREATE STREAM rides FROM 'generator:taxi?rows=20000&rate=0.05&keys=200' TIME dropoff_time;
SELECT COUNT(*) AS rides, ROUND(AVG(fare), 2) AS fare
FROM rides [RANGE 1 DAY TIME ZONE 'America/New_York'];
