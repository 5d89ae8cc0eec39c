WITH trades AS (
    SELECT *, (trade_price - average_price) / average_price AS distance, ROW_NUMBER() OVER () AS seq
    FROM read_csv('../input/trades.csv')
), hedged AS (
    SELECT greatest(r.ts, s.ts) AS ts, r.id AS r_id, r.trade_price AS r_price, s.id AS s_id, s.trade_price AS s_price,
           r.ts <= s.ts AS forth, r.seq AS r_seq, s.seq AS s_seq
    FROM trades AS r JOIN trades AS s
    ON abs(epoch_us(r.ts) - epoch_us(s.ts)) <= 50000 AND s.id <> r.id
       AND CASE WHEN r.distance <> 0 THEN s.distance / r.distance END BETWEEN -1.05 AND -0.95
)
SELECT make_timestamp(epoch_us(ts) // 500000 * 500000) AS window_start,
       make_timestamp(epoch_us(ts) // 500000 * 500000 + 500000) AS window_end, r_id, s_id, COUNT(*) AS hedges
FROM hedged
WHERE r_id < s_id
GROUP BY ALL
HAVING COUNT(*) > 1
ORDER BY window_end, r_id, s_id;
