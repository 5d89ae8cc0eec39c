-- How large are packets: the median, and what one of twenty exceeds?
-- Run: tidegate run examples/first_week/percentiles.sql --master none
CREATE STREAM packets FROM 'generator:packets?rows=30000&rate=1000' TIME ts;
SELECT protocol, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY size) AS half,
       PERCENTILE_DISC(0.95) WITHIN GROUP (ORDER BY size) AS most
FROM packets [RANGE 5 SECONDS]
GROUP BY protocol;
