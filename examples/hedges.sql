-- Hedges: trades of two companies within 50 ms whose prices went opposite ways by about the same share.
--
-- Shows: a self-join on a predicate without any equality, which no hash can help with.
-- Run:   tidegate run examples/hedges.sql --master none
-- Then:  tidegate explain examples/hedges.sql says how pairs are found; --instances 7 gives the same rows. With
--        --stream 'trades=generator:trades?pace=2000' --policy model it follows a live rate; own_trades.sql has your own trades.

CREATE STREAM trades FROM 'generator:trades?rows=5000&rate=1000' TIME ts;

SELECT l.symbol AS one, l.price AS one_price, r.symbol AS other, r.price AS other_price
FROM trades AS l [RANGE 50 MILLISECONDS] JOIN trades AS r [RANGE 50 MILLISECONDS]
ON l.symbol < r.symbol
AND l.price <> l.average_price
AND ((r.price - r.average_price) / r.average_price) / ((l.price - l.average_price) / l.average_price)
    BETWEEN -1.05 AND -0.95;
