-- Orders and payments of the same customer, at most ten seconds apart.
CREATE STREAM orders FROM 'orders.csv';
CREATE STREAM payments FROM 'payments.csv';

SELECT o.order_id, p.payment_id, o.customer, o.amount - p.amount AS open, p.ts AS paid
FROM orders AS o [RANGE 10 SECONDS] JOIN payments AS p [RANGE 10 SECONDS]
ON o.customer = p.customer;
