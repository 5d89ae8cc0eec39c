-- The mean fare of each route over half an hour, every quarter of one, as SPEAr is measured; and the query that the
-- dissertation explains windows with, the ten dearest routes.
CREATE STREAM rides FROM '../input/rides1.csv', '../input/rides2.csv' TIME dropoff_time;
CREATE STREAM routes AS SELECT pickup_cell || '-' || dropoff_cell AS route, fare FROM rides;

INSERT INTO by_route SELECT route, AVG(fare) AS fare
FROM routes [RANGE 30 MINUTES SLIDE 15 MINUTES] GROUP BY route;

INSERT INTO dearest SELECT route, AVG(fare) AS fare
FROM routes [RANGE 15 MINUTES SLIDE 5 MINUTES] GROUP BY route ORDER BY AVG(fare) DESC LIMIT 10;
