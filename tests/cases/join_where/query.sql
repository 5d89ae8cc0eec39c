-- Conditions on one side are decided before tuples meet, those on both when they do.
CREATE STREAM rides FROM 'rides.csv';
CREATE STREAM weather FROM 'weather.csv';

SELECT r.id AS ride, w.id AS report, r.zone, r.fare, w.rain
FROM rides AS r [RANGE 15 SECONDS] JOIN weather AS w [RANGE 15 SECONDS]
ON r.zone = w.zone
WHERE r.fare > 10 AND NOT w.rain IS NULL AND (w.rain OR r.fare < 40);
