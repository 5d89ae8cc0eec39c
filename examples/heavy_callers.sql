-- Customers who call long: the mean duration of their calls in the last hour, every minute.
--
-- Shows: CREATE STREAM ... AS, which makes a stream of a query; a query over the results of a window.
-- Run:   tidegate run examples/heavy_callers.sql --master none
-- Then:  tidegate explain examples/heavy_callers.sql --master none --strategy operator-cloud says how else
--        the query can be cut into parts.

CREATE STREAM calls FROM 'generator:calls?rows=40000&rate=8&keys=2000';

CREATE STREAM durations AS
SELECT src, unix_seconds(end_time) - unix_seconds(start_time) AS seconds FROM calls;

CREATE STREAM hourly AS
SELECT src, AVG(seconds) AS seconds, COUNT(*) AS calls
FROM durations [RANGE 1 HOUR SLIDE 1 MINUTE]
GROUP BY src;

SELECT src, ROUND(seconds) AS seconds, calls FROM hourly WHERE seconds > 200 AND calls >= 10;
