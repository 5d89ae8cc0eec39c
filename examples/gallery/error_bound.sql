-- How large is the median packet, give or take ten percent?
-- Run: tidegate run examples/gallery/error_bound.sql --master none
CREATE STREAM packets FROM 'generator:packets?rows=120000&rate=1000' TIME ts;
SELECT MEDIAN(size + src_port % 997) AS size
FROM packets [RANGE 10 SECONDS]
WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT;
