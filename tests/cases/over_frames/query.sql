-- Running and moving columns; tuples of one instant are peers where RANGE says so.
CREATE STREAM trades FROM 'trades.csv';

SELECT symbol, price,
       SUM(price) OVER (PARTITION BY symbol ORDER BY ts) AS so_far,
       COUNT(*) OVER (PARTITION BY symbol ORDER BY ts RANGE '5 seconds' PRECEDING) AS recent,
       MAX(price) OVER (ORDER BY ts ROWS 2 PRECEDING) AS highest,
       LAG(price, 1, 0) OVER (PARTITION BY symbol ORDER BY ts) AS before
FROM trades
WHERE price > 0;
