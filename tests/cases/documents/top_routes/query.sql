-- The first query of the DEBS 2015 challenge: the ten most frequent routes of the last half hour. Here every five
-- minutes, where the challenge asks anew with every ride.
CREATE STREAM rides FROM '../input/rides1.csv', '../input/rides2.csv' TIME dropoff_time;

SELECT pickup_cell, dropoff_cell, COUNT(*) AS rides
FROM rides [RANGE 30 MINUTES SLIDE 5 MINUTES]
GROUP BY pickup_cell, dropoff_cell
ORDER BY rides DESC LIMIT 10;
