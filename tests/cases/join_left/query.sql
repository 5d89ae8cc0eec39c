-- Every order, with the payments of its customer at most five seconds before or ten after it.
CREATE STREAM orders FROM 'orders.csv';
CREATE STREAM payments FROM 'payments.csv';

SELECT o.order_id, p.payment_id, o.customer, p.ts AS paid
FROM orders AS o [RANGE 10 SECONDS] LEFT JOIN payments AS p [RANGE 5 SECONDS]
ON o.customer = p.customer;
