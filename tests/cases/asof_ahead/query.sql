-- Every order with the next payment of its customer within ten seconds, in the order in which that is known.
CREATE STREAM orders FROM 'orders.csv';
CREATE STREAM payments FROM 'payments.csv';

SELECT o.order_id, p.payment_id, o.customer, p.ts AS paid
FROM orders AS o ASOF LEFT JOIN payments AS p [RANGE 10 SECONDS] MATCH_CONDITION (o.ts <= p.ts) ON o.customer = p.customer;
