-- StreamCloud's Cartesian product: calls of one number, as caller or called, that overlap in time. A number that is in
-- several such pairs has been copied.
CREATE STREAM calls FROM '../input/calls.csv' TIME ts;
CREATE STREAM overlaps AS
SELECT a.src AS one, a.dst AS with_one, b.src AS other, b.dst AS with_other, b.start_time AS since,
       CASE WHEN a.src = b.src OR a.src = b.dst THEN a.src ELSE a.dst END AS number
FROM calls AS a [RANGE 1 MINUTE] JOIN calls AS b [RANGE 1 MINUTE]
ON (a.src = b.src OR a.src = b.dst OR a.dst = b.src OR a.dst = b.dst)
AND a.start_time < b.start_time AND b.start_time < a.end_time;

INSERT INTO pairs SELECT number, one, with_one, other, with_other, since FROM overlaps;
INSERT INTO copied SELECT number, COUNT(*) AS n, MIN(since) AS since
FROM overlaps [RANGE 10 MINUTES SLIDE 2 MINUTES]
GROUP BY number
HAVING COUNT(*) > 5
ORDER BY n DESC LIMIT 3;
