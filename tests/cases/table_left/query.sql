-- Every ride with the names of its zone: none, one or two.
CREATE STREAM rides FROM 'rides.csv';
CREATE TABLE zones FROM 'zones.csv';

SELECT r.ride, z.name, r.fare FROM rides AS r LEFT JOIN zones AS z ON r.zone = z.id AND r.fare < 25;
