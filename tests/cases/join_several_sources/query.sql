-- Two and three sources with many equal times; pairs come in the order of the later, then of the earlier tuple.
CREATE STREAM l FROM 'l1.csv', 'l2.csv';
CREATE STREAM r FROM 'r1.csv', 'r2.csv', 'r3.csv';

SELECT l.id AS left_id, r.id AS right_id, l.k
FROM l [RANGE 4 SECONDS] JOIN r [RANGE 4 SECONDS]
ON l.k = r.k;
