SELECT dropoff_time AS ts, medallion, fare,
       SUM(fare) OVER (PARTITION BY medallion ORDER BY dropoff_time ROWS UNBOUNDED PRECEDING) AS so_far
FROM rides ORDER BY dropoff_time;
