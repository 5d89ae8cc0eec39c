WITH orders AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('orders.csv')),
payments AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('payments.csv'))
SELECT greatest(o.ts, p.ts) AS ts, o.order_id, p.payment_id, o.customer, o.amount - p.amount AS open, p.ts AS paid
FROM orders AS o JOIN payments AS p
ON abs(epoch_us(o.ts) - epoch_us(p.ts)) <= 10000000 AND o.customer = p.customer
ORDER BY greatest(o.ts, p.ts),
         CASE WHEN o.ts <= p.ts THEN 1 ELSE 0 END,
         CASE WHEN o.ts <= p.ts THEN p.seq ELSE o.seq END,
         CASE WHEN o.ts <= p.ts THEN o.seq ELSE p.seq END;
