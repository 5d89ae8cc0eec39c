-- Three stateful operators in a row: the calls of customers who called long in the last ten minutes, by district.
--
-- StreamCloud compares its strategies on a query with three of them (Fig. 13), whose drawing we do not have:
-- this one has as many, with a map before and a filter between them. A call meets what was known of its caller at
-- most two minutes before it.
CREATE STREAM calls FROM '../input/calls.csv' TIME ts;
CREATE STREAM durations AS
SELECT src, district, unix_seconds(end_time) - unix_seconds(start_time) AS seconds FROM calls;
CREATE STREAM heavy AS
SELECT src, AVG(seconds) AS mean FROM durations [RANGE 10 MINUTES SLIDE 2 MINUTES] GROUP BY src
HAVING AVG(seconds) > 100;
CREATE STREAM met AS
SELECT d.district, d.seconds, h.mean
FROM heavy AS h [RANGE 119 SECONDS] JOIN durations AS d [RANGE 0 SECONDS] ON h.src = d.src;

SELECT district, COUNT(*) AS calls, SUM(seconds) AS seconds, MAX(mean) AS heaviest
FROM met [RANGE 5 MINUTES] GROUP BY district;
