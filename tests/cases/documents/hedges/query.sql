-- The hedges of the join paper: trades of two companies whose prices are off their averages by about the same share,
-- the opposite way; and how many of them each pair of companies had in half a second.
CREATE STREAM trades FROM '../input/trades.csv' TIME ts;
CREATE STREAM hedged AS
SELECT r.id AS r_id, r.trade_price AS r_price, s.id AS s_id, s.trade_price AS s_price
FROM trades AS r [RANGE 50 MILLISECONDS] JOIN trades AS s [RANGE 50 MILLISECONDS]
ON s.id <> r.id AND r.trade_price <> r.average_price
AND ((s.trade_price - s.average_price) / s.average_price) / ((r.trade_price - r.average_price) / r.average_price)
    BETWEEN -1.05 AND -0.95;

INSERT INTO pairs SELECT r_id, r_price, s_id, s_price FROM hedged;
INSERT INTO companies SELECT r_id, s_id, COUNT(*) AS hedges
FROM hedged [RANGE 500 MILLISECONDS] WHERE r_id < s_id GROUP BY r_id, s_id HAVING COUNT(*) > 1;
