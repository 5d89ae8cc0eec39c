-- Rows that cannot be read, or have no time, are put aside with their text and disturb nothing.
CREATE STREAM log FROM 'log.csv';

SELECT level, COUNT(*) AS n, SUM(took) AS took
FROM log [RANGE 10 SECONDS]
GROUP BY level;
