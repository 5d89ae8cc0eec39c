WITH orders AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('orders.csv')),
payments AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('payments.csv')),
pairs AS (
  SELECT greatest(o.ts, p.ts) AS ts, o.order_id, p.payment_id, p.amount, o.customer,
    ROW_NUMBER() OVER (ORDER BY greatest(o.ts, p.ts), CASE WHEN o.ts <= p.ts THEN 1 ELSE 0 END,
      CASE WHEN o.ts <= p.ts THEN p.seq ELSE o.seq END, CASE WHEN o.ts <= p.ts THEN o.seq ELSE p.seq END) AS seq
  FROM orders AS o JOIN payments AS p ON o.customer = p.customer
  AND epoch_us(p.ts) - epoch_us(o.ts) <= 10000000 AND epoch_us(o.ts) - epoch_us(p.ts) <= 4000000
)
SELECT greatest(a.ts, r.ts) AS ts, a.order_id, a.payment_id, r.payment_id AS refund, a.customer
FROM pairs AS a JOIN payments AS r ON a.customer = r.customer
AND epoch_us(r.ts) - epoch_us(a.ts) <= 10000000 AND epoch_us(a.ts) - epoch_us(r.ts) <= 20000000
WHERE r.amount < a.amount
ORDER BY greatest(a.ts, r.ts), CASE WHEN a.ts <= r.ts THEN 1 ELSE 0 END,
         CASE WHEN a.ts <= r.ts THEN r.seq ELSE a.seq END,
         CASE WHEN a.ts <= r.ts THEN a.seq ELSE r.seq END;
