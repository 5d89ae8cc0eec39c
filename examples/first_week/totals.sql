-- What do rides earn by payment and area, with totals?
-- Run: tidegate run examples/first_week/totals.sql --master none
CREATE STREAM rides FROM 'generator:taxi?rows=20000&rate=2&keys=200' TIME dropoff_time;
SELECT payment, pickup_cell, COUNT(*) AS rides, ROUND(SUM(fare), 2) AS fares
FROM rides [RANGE 1 HOUR]
GROUP BY ROLLUP (payment, pickup_cell);
