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
SELECT ts, r_id, r_price, s_id, s_price
FROM hedged
ORDER BY ts, forth, CASE WHEN forth THEN s_seq ELSE r_seq END, CASE WHEN forth THEN r_seq ELSE s_seq END;
