-- The median and the 95th percentile of packet sizes by protocol, over 10 seconds, every second.
--
-- Shows: exact quantiles in a sliding window, an expression of aggregates, FILTER, HAVING.
-- Run:   tidegate run examples/median_packet_size.sql --master none
-- Then:  tidegate explain examples/median_packet_size.sql --master none

CREATE STREAM packets FROM 'generator:packets?rows=30000&rate=1000';

SELECT protocol,
       COUNT(*) AS packets,
       MEDIAN(size) AS median,
       QUANTILE(size, 0.95) AS p95,
       ROUND(100 * COUNT(*) FILTER (WHERE size >= 1000) / COUNT(*), 1) AS percent_large
FROM packets [RANGE 10 SECONDS SLIDE 1 SECOND]
GROUP BY protocol
HAVING COUNT(*) >= 100;
