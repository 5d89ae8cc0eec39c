WITH orders AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('orders.csv')),
payments AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('payments.csv')),
joined AS (
  SELECT o.ts AS o_ts, p.ts AS p_ts, o.seq AS o_seq, p.seq AS p_seq, o.order_id, p.payment_id, o.customer
  FROM orders AS o LEFT JOIN payments AS p
  ON p.ts - o.ts <= INTERVAL 10 SECONDS AND o.ts - p.ts <= INTERVAL 5 SECONDS AND o.customer = p.customer
)
SELECT CASE WHEN p_ts IS NULL THEN o_ts ELSE greatest(o_ts, p_ts) END AS ts, order_id, payment_id, customer, p_ts AS paid
FROM joined
ORDER BY CASE WHEN p_ts IS NULL THEN o_ts + INTERVAL 10 SECONDS ELSE greatest(o_ts, p_ts) END,
         p_ts IS NULL,
         CASE WHEN p_ts IS NULL THEN 0 WHEN o_ts <= p_ts THEN 1 ELSE 0 END,
         CASE WHEN p_ts IS NULL THEN 0 WHEN o_ts <= p_ts THEN p_seq ELSE o_seq END,
         CASE WHEN p_ts IS NULL THEN o_seq WHEN o_ts <= p_ts THEN o_seq ELSE p_seq END;
