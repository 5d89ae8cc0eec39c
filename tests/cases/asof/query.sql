-- Every order with the newest payment of its customer, at most twenty seconds old.
CREATE STREAM orders FROM 'orders.csv';
CREATE STREAM payments FROM 'payments.csv';

SELECT o.order_id, p.payment_id, customer, p.ts AS paid
FROM orders AS o ASOF LEFT JOIN payments AS p [RANGE 20 SECONDS] MATCH_CONDITION (o.ts >= p.ts) USING (customer);
