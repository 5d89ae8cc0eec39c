-- Each source may be five seconds out of order, by itself; what is later than that is late.
CREATE STREAM s FROM 'a.csv', 'b.csv' DISORDER 5 SECONDS;

SELECT COUNT(*) AS n, SUM(v) AS v, FIRST(id) AS first, LAST(id) AS last
FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS];
