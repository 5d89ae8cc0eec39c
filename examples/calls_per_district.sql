-- Calls, callers and the mean duration per district and minute.
--
-- Shows: an exact distinct count, arithmetic on times, a subquery that prepares columns.
-- Run:   tidegate run examples/calls_per_district.sql --master none
-- Then:  --stream calls=my_calls.csv runs the same query over a file with these columns.

CREATE STREAM calls FROM 'generator:calls?rows=60000&rate=200';

SELECT district, COUNT(*) AS calls, COUNT(DISTINCT src) AS callers, ROUND(AVG(seconds), 1) AS seconds
FROM (
  SELECT district, src, (unix_millis(end_time) - unix_millis(start_time)) / 1000 AS seconds
  FROM calls
) [RANGE 1 MINUTE]
GROUP BY district
ORDER BY calls DESC LIMIT 5;
