-- Two days from five in the morning on, every day.
CREATE STREAM trips FROM 'trips.csv';

SELECT COUNT(*) AS n, SUM(fare) AS fare FROM trips [RANGE 2 DAYS SLIDE 1 DAY OFFSET 5 HOURS];
