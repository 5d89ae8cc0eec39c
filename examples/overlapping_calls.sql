-- Telephones in two calls at once: calls of one number, as caller or called, that overlap in time, and the numbers that
-- are in several such pairs.
--
-- Shows: a self-join without a key, a window over its pairs, and two outputs with INSERT INTO.
-- Run:   tidegate run examples/overlapping_calls.sql --master none --out overlapping_out
-- Then:  look into overlapping_out/pairs and overlapping_out/copied.

CREATE STREAM calls FROM 'generator:calls?rows=4000&rate=10&keys=1000';

CREATE STREAM overlapping AS
SELECT CASE WHEN a.src = b.src OR a.src = b.dst THEN a.src ELSE a.dst END AS number,
       a.start_time AS first_start, a.end_time AS first_end, b.start_time AS second_start
FROM calls AS a [RANGE 1 MINUTE] JOIN calls AS b [RANGE 1 MINUTE]
ON (a.src = b.src OR a.src = b.dst OR a.dst = b.src OR a.dst = b.dst)
AND a.start_time < b.start_time AND b.start_time < a.end_time;

INSERT INTO pairs SELECT * FROM overlapping;

INSERT INTO copied
SELECT number, COUNT(*) AS n FROM overlapping [RANGE 5 MINUTES SLIDE 1 MINUTE]
GROUP BY number
HAVING COUNT(*) >= 3
ORDER BY n DESC LIMIT 5;
