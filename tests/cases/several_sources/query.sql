-- Four sources of one stream; at equal times their order is the order of the names.
CREATE STREAM trades FROM 'east.csv', 'west.csv', 'folder';

SELECT sym, FIRST(price) AS open, MAX(price) AS high, MIN(price) AS low, LAST(price) AS close, COUNT(*) AS n
FROM trades [RANGE 5 SECONDS]
GROUP BY sym;
