-- Every ten minutes also what each route has so far in windows that are still open.
CREATE STREAM rides FROM 'rides.csv' TIME dropoff_time;

SELECT route, COUNT(*) AS n, AVG(fare) AS fare
FROM rides [RANGE 30 MINUTES SLIDE 15 MINUTES]
GROUP BY route
HAVING AVG(fare) > 1
EMIT EVERY '10 minutes';
