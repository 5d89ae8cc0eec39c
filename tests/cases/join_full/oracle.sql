WITH orders AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('orders.csv')),
payments AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('payments.csv')),
joined AS (
  SELECT o.ts AS o_ts, p.ts AS p_ts, o.seq AS o_seq, p.seq AS p_seq, o.order_id, p.payment_id, o.amount - p.amount AS open
  FROM orders AS o FULL JOIN payments AS p
  ON abs(epoch_us(o.ts) - epoch_us(p.ts)) <= 8000000 AND abs(o.amount - p.amount) <= 10
),
placed AS (SELECT *, p_ts IS NULL OR o_ts IS NULL AS alone, greatest(o_ts, p_ts) AS shown FROM joined)
SELECT shown AS ts, order_id, payment_id, open
FROM placed
ORDER BY CASE WHEN alone THEN shown + INTERVAL 8 SECONDS ELSE shown END,
         alone,
         CASE WHEN alone THEN 0 WHEN o_ts <= p_ts THEN 1 ELSE 0 END,
         CASE WHEN alone THEN 0 WHEN o_ts <= p_ts THEN p_seq ELSE o_seq END,
         CASE WHEN alone AND o_ts IS NULL THEN 1 ELSE 0 END,
         CASE WHEN alone THEN coalesce(o_seq, p_seq) WHEN o_ts <= p_ts THEN o_seq ELSE p_seq END;
