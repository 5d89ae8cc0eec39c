-- What is the average price of the last ten trades of each share?
-- Run: tidegate run examples/first_week/moving_average.sql --master none
CREATE STREAM trades FROM 'generator:trades?rows=10000&rate=100&keys=40' TIME ts;
SELECT symbol, price, AVG(price) OVER (PARTITION BY symbol ORDER BY ts ROWS 9 PRECEDING) AS average
FROM trades;
