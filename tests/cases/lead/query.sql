-- What came next of each symbol; a row comes with the second trade after it, or at the end.
CREATE STREAM trades FROM 'trades.csv';

SELECT symbol, price,
       LEAD(price) OVER (PARTITION BY symbol ORDER BY ts) AS next,
       LEAD(price, 2, -1) OVER (PARTITION BY symbol ORDER BY ts) AS second,
       SUM(price) OVER (ORDER BY ts) AS so_far
FROM trades;
