-- Orders, payments and refunds of the same customer; pairs reach as far as the longest window.
CREATE STREAM orders FROM 'orders.csv';
CREATE STREAM payments FROM 'payments.csv';

SELECT o.order_id, p.payment_id, r.payment_id AS refund, customer
FROM orders AS o [RANGE 10 SECONDS] JOIN payments AS p [RANGE 4 SECONDS] USING (customer)
JOIN payments AS r [RANGE 20 SECONDS] USING (customer)
WHERE r.amount < p.amount;
