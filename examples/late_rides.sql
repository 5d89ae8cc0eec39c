-- Rides by payment and hour, from a source that is more out of order than it says.
--
-- Shows: DISORDER and the side output of late tuples. The rides come up to 60 seconds out of order;
--        50 seconds are allowed. What is later is not counted, and not lost.
-- Run:   tidegate run examples/late_rides.sql --master none --format csv --out rides_out
-- Then:  look into rides_out/_late; allow 60 seconds, and there is none.

CREATE STREAM rides FROM 'generator:taxi?rows=30000&rate=5&disorder=60' TIME dropoff_time
DISORDER 50 SECONDS;

SELECT payment, COUNT(*) AS rides, SUM(tip) AS tips
FROM rides [RANGE 1 HOUR]
GROUP BY payment;
