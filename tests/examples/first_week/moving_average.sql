SELECT ts, symbol, price, AVG(price) OVER (PARTITION BY symbol ORDER BY ts ROWS 9 PRECEDING) AS average
FROM trades ORDER BY ts;
