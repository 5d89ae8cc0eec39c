-- Hedges in a file of your own trades, which need no more than a symbol and a price: each price is compared with
-- the mean of its symbol over the minute before it.
--
-- Shows: a join on a ratio of both sides, which runs compiled; a mean over the rows before each row as its input.
-- Run:   tidegate run examples/own_trades.sql --master none
-- Then:  --stream trades=FILE.parquet (columns ts, symbol, price) reads your own trades. With a live source, such as
--        --stream 'trades=generator:trades?pace=2000', --policy model follows the rate.

CREATE STREAM trades FROM 'generator:trades?rows=5000&rate=1000' TIME ts;

CREATE STREAM priced AS
SELECT symbol, price, AVG(price) OVER (
  PARTITION BY symbol ORDER BY ts RANGE BETWEEN INTERVAL 1 MINUTE PRECEDING AND CURRENT ROW
) AS mean
FROM trades;

SELECT l.symbol AS one, l.price AS one_price, r.symbol AS other, r.price AS other_price
FROM priced AS l [RANGE 50 MILLISECONDS] JOIN priced AS r [RANGE 50 MILLISECONDS]
ON l.symbol < r.symbol AND l.price <> l.mean
AND ((r.price - r.mean) / r.mean) / ((l.price - l.mean) / l.mean) BETWEEN -1.05 AND -0.95;
