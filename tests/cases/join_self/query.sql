-- Calls that have a number in common and overlap in time; each pair once, the one with the lower id first.
CREATE STREAM calls FROM 'calls.csv' TIME ended;

SELECT a.id AS first, b.id AS second, greatest(a.started, b.started) AS since
FROM calls AS a [RANGE 30 SECONDS] JOIN calls AS b [RANGE 30 SECONDS]
ON a.id < b.id AND (a.src IN (b.src, b.dst) OR a.dst IN (b.src, b.dst))
   AND a.started < b.ended AND b.started < a.ended;
