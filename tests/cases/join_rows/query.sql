-- A bid meets the last three asks, an ask the last five bids, whatever their item; WHERE comes after that.
CREATE STREAM bids FROM 'bids.csv';
CREATE STREAM asks FROM 'asks.csv';

SELECT b.id AS bid, a.id AS ask, b.item, b.price - a.price AS gain
FROM bids AS b [ROWS 5] JOIN asks AS a [ROWS 3]
ON b.item = a.item AND b.price >= a.price - 2
WHERE a.price < 18;
