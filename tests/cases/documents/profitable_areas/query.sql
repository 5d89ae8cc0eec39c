-- The second query of the DEBS 2015 challenge: the areas where the next fare pays most. Profit is the median of fare
-- and tip of rides from there that ended in the last quarter of an hour; a taxi is empty where its last ride of the
-- last half hour ended. Simplified: every five minutes, where the challenge asks anew with every ride, and equal areas
-- are in the order of their names, not of their newest ride.
CREATE STREAM rides FROM '../input/rides1.csv', '../input/rides2.csv' TIME dropoff_time;
CREATE STREAM profits AS
SELECT pickup_cell AS cell, MEDIAN(fare + tip) AS profit
FROM rides [RANGE 15 MINUTES SLIDE 5 MINUTES] GROUP BY pickup_cell;
CREATE STREAM newest AS
SELECT medallion, LAST(dropoff_cell) AS cell FROM rides [RANGE 30 MINUTES SLIDE 5 MINUTES] GROUP BY medallion;
CREATE STREAM empties AS
SELECT cell, COUNT(*) AS taxis FROM newest [RANGE 5 MINUTES] GROUP BY cell;
CREATE STREAM areas AS
SELECT p.cell, p.profit, e.taxis, p.profit / e.taxis AS profitability
FROM profits AS p [RANGE 0 SECONDS] JOIN empties AS e [RANGE 0 SECONDS] ON p.cell = e.cell;

SELECT cell, MAX(profitability) AS profitability, MAX(profit) AS profit, MAX(taxis) AS taxis
FROM areas [RANGE 5 MINUTES]
GROUP BY cell
ORDER BY profitability DESC LIMIT 10;
