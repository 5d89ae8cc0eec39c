-- Orders that nobody paid: no payment of the customer came up to ten seconds after the order.
CREATE STREAM orders FROM 'orders.csv';
CREATE STREAM payments FROM 'payments.csv';

SELECT * FROM orders [RANGE 10 SECONDS] ANTI JOIN payments [RANGE 0 SECONDS] USING (customer);
