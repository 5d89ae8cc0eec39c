WITH orders AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('orders.csv'))
SELECT o.ts, o.order_id, o.customer, o.amount
FROM orders AS o ANTI JOIN read_csv('payments.csv') AS p
ON p.ts >= o.ts AND p.ts - o.ts <= INTERVAL 10 SECONDS AND o.customer = p.customer
ORDER BY o.ts, o.seq;
