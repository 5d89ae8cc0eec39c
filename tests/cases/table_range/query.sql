-- The classes of fares that a ride is in; they overlap, and one has no upper end.
CREATE STREAM rides FROM 'rides.csv';
CREATE TABLE classes FROM 'zones.csv';

SELECT r.ride, r.fare, c.name FROM rides AS r JOIN classes AS c ON r.fare BETWEEN c.low AND c.high
WHERE c.name <> 'West' OR r.fare > 25;
