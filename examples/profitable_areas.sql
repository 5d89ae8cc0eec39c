-- Where the next fare pays most: the median of fare and tip of rides from an area in the last 15 minutes, for each taxi
-- that is empty there. A taxi is empty where its last ride of the last 30 minutes ended.
--
-- Shows: a window over a window, a join of two windows, and a window over the join.
--        Rows of windows that end together meet in [RANGE 0 SECONDS].
-- Run:   tidegate run examples/profitable_areas.sql --master none
-- Then:  --instances 4 --batch-rows 3000 gives the same rows.

CREATE STREAM rides FROM 'generator:taxi?rows=20000&rate=4&keys=500' TIME dropoff_time;

CREATE STREAM profits AS
SELECT pickup_cell AS cell, MEDIAN(fare + tip) AS profit
FROM rides [RANGE 15 MINUTES SLIDE 5 MINUTES]
GROUP BY pickup_cell;

CREATE STREAM newest AS
SELECT medallion, LAST(dropoff_cell) AS cell
FROM rides [RANGE 30 MINUTES SLIDE 5 MINUTES]
GROUP BY medallion;

CREATE STREAM empties AS
SELECT cell, COUNT(*) AS taxis FROM newest [RANGE 5 MINUTES] GROUP BY cell;

CREATE STREAM areas AS
SELECT p.cell, p.profit, e.taxis, p.profit / e.taxis AS profitability
FROM profits AS p [RANGE 0 SECONDS] JOIN empties AS e [RANGE 0 SECONDS] ON p.cell = e.cell;

SELECT cell, ROUND(MAX(profitability), 2) AS profitability, MAX(profit) AS profit, MAX(taxis) AS taxis
FROM areas [RANGE 5 MINUTES]
GROUP BY cell
ORDER BY MAX(profitability) DESC LIMIT 10;
