-- What are the three busiest routes, while the number of instances changes?
-- Run: tidegate run examples/gallery/rescale.sql --master none --batch-rows 2000 --instances 1 --switch 3=4 --switch 7=2
CREATE STREAM rides FROM 'generator:taxi?rows=20000&rate=5&keys=100' TIME dropoff_time;
SELECT route, COUNT(*) AS rides
FROM rides [RANGE 10 MINUTES]
GROUP BY route
ORDER BY rides DESC, route LIMIT 3;
