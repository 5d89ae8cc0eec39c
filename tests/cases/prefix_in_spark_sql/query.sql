-- needs Spark: no Arrow kernel knows SOUNDEX, so rows go through Spark SQL before they are folded.
CREATE STREAM people FROM 'a.csv', 'b.csv' TIME ts;

SELECT sound, COUNT(*) AS n, SUM(v) AS v, FIRST(v) AS first, LAST(v) AS last
FROM (SELECT SOUNDEX(name) AS sound, v FROM people WHERE v > 0) [RANGE 5 SECONDS]
GROUP BY sound;
