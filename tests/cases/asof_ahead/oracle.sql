WITH orders AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('orders.csv')),
payments AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('payments.csv')),
near AS (
  SELECT o.seq, p.payment_id, p.ts
  FROM orders AS o ASOF JOIN payments AS p ON o.customer = p.customer AND o.ts <= p.ts
  WHERE p.ts - o.ts <= INTERVAL 10 SECONDS
)
SELECT o.ts, o.order_id, n.payment_id, o.customer, n.ts AS paid
FROM orders AS o LEFT JOIN near AS n ON o.seq = n.seq
ORDER BY coalesce(n.ts, o.ts + INTERVAL 10 SECONDS), n.ts IS NULL, o.seq;
