-- Orders and payments of nearly one amount, and those of either side that have no such partner.
CREATE STREAM orders FROM 'orders.csv';
CREATE STREAM payments FROM 'payments.csv';

SELECT o.order_id, p.payment_id, o.amount - p.amount AS open
FROM orders AS o [RANGE 8 SECONDS] FULL OUTER JOIN payments AS p [RANGE 8 SECONDS]
ON o.amount BETWEEN p.amount - 10 AND p.amount + 10;
