-- The query of the design: an average per route, every five minutes over the last fifteen.
CREATE STREAM rides FROM 'rides.csv' TIME dropoff_time;

SELECT route, AVG(fare) AS fare, COUNT(*) AS n, SUM(tip) AS tips
FROM rides [RANGE 15 MINUTES SLIDE 5 MINUTES]
WHERE fare > 0
GROUP BY route;
