-- The three queries with which UniMiCo moves windows of time, of tuples, and one over the other. Its windows slide with
-- every tuple; here they give nothing before they are full. The last output is the third one without overlap.
CREATE STREAM s FROM '../input/s1.csv', '../input/s2.csv' TIME ts;
CREATE STREAM t FROM '../input/t.csv' TIME ts;
CREATE STREAM pairs AS
SELECT s.l, s.m, t.v FROM s [RANGE 10 SECONDS] JOIN t [RANGE 10 SECONDS] ON s.l = t.l;

INSERT INTO one SELECT l, m, v FROM pairs;
INSERT INTO two SELECT SUM(m) AS m FROM s [ROWS 5 SLIDE 1];
INSERT INTO three SELECT SUM(m) AS m FROM pairs [ROWS 5 SLIDE 1];
INSERT INTO apart SELECT SUM(m) AS m, COUNT(m) AS n FROM pairs [ROWS 5];
