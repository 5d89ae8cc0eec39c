-- The first of each order within ten minutes; an order without a number is one like any other.
CREATE STREAM orders FROM 'orders.csv';

SELECT DISTINCT ON (id) id, amount FROM orders WHERE amount > 0 KEEP FIRST WITHIN '10 minutes';
