-- When does the price of a share jump by more than one part in two thousand?
-- Run: tidegate run examples/first_week/price_changes.sql --master none
CREATE STREAM trades FROM 'generator:trades?rows=10000&rate=100&keys=40' TIME ts;
SELECT symbol, before, price FROM (
  SELECT symbol, price, LAG(price) OVER (PARTITION BY symbol ORDER BY ts) AS before FROM trades)
WHERE ABS(price - before) > before / 2000;
