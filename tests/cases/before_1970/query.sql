-- Windows are aligned at 1970, on both sides of it.
CREATE STREAM moon FROM 'moon.csv';

SELECT craft, SUM(v) AS v, COUNT(*) AS n
FROM moon [RANGE 20 SECONDS SLIDE 15 SECONDS]
GROUP BY craft;
