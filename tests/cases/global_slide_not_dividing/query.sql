-- One group, and windows of ten minutes every four: panes of two.
CREATE STREAM calls FROM 'calls.json' TIME called;

SELECT COUNT(*) AS n, SUM(secs) AS secs, AVG(secs) AS mean, MAX(secs) - MIN(secs) AS spread
FROM calls [RANGE 10 MINUTES SLIDE 4 MINUTES];
