-- The benchmark of stream joins, over a small domain: two bands, of a whole and of a real number.
CREATE STREAM r FROM 'r.csv';
CREATE STREAM s FROM 's.csv';

SELECT r.x, r.y, s.a, s.b
FROM r [RANGE 20 SECONDS] JOIN s [RANGE 20 SECONDS]
ON r.x BETWEEN s.a - 10 AND s.a + 10 AND r.y BETWEEN s.b - 10 AND s.b + 10;
