-- Texts that are equal, and texts in their order; NULL meets nothing.
CREATE STREAM l FROM 'l.csv';
CREATE STREAM r FROM 'r.csv';

SELECT l.id AS left_id, r.id AS right_id, l.name AS left_name, r.name AS right_name, r.city
FROM l [RANGE 12 SECONDS] JOIN r [RANGE 12 SECONDS]
ON l.city = r.city AND l.name <= r.name;
