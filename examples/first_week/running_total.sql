-- What has each taxi earned so far?
-- Run: tidegate run examples/first_week/running_total.sql --master none
CREATE STREAM rides FROM 'generator:taxi?rows=20000&rate=2&keys=200' TIME dropoff_time;
SELECT medallion, fare, SUM(fare) OVER (PARTITION BY medallion ORDER BY dropoff_time
                                        ROWS UNBOUNDED PRECEDING) AS so_far
FROM rides;
