SELECT ts, symbol, before, price FROM (
  SELECT ts, symbol, price, LAG(price) OVER (PARTITION BY symbol ORDER BY ts) AS before FROM trades)
WHERE ABS(price - before) > before / 2000 ORDER BY ts;
