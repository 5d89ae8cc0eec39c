-- The first two of each window; equal weights stand in the order of the key, NULL first.
CREATE STREAM votes FROM 'votes.csv';

SELECT party, SUM(weight) AS weight, COUNT(*) AS n
FROM votes [RANGE 10 SECONDS]
GROUP BY party
ORDER BY weight DESC LIMIT 2;
