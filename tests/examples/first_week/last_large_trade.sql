WITH large AS (FROM trades WHERE quantity >= 1000)
SELECT trades.ts, trades.symbol, trades.price, large.price AS before, large.ts AS at
FROM trades ASOF JOIN large ON trades.symbol = large.symbol AND trades.ts > large.ts
WHERE trades.ts - large.ts <= INTERVAL 1 MINUTE ORDER BY trades.ts;
