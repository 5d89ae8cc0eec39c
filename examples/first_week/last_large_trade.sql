-- What was the price of the last large trade before each trade, in the last minute?
-- Run: tidegate run examples/first_week/last_large_trade.sql --master none
CREATE STREAM trades FROM 'generator:trades?rows=10000&rate=100&keys=40' TIME ts;
CREATE STREAM large AS SELECT symbol, price FROM trades WHERE quantity >= 1000;
SELECT trades.symbol, trades.price, large.price AS before, large.ts AS at
FROM trades ASOF JOIN large [RANGE 1 MINUTE] MATCH_CONDITION (trades.ts > large.ts)
ON trades.symbol = large.symbol;
