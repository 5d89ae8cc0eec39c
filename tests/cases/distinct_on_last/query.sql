-- The last of each order within ten minutes of the first; rows come when that time has passed.
CREATE STREAM orders FROM 'orders.csv';

SELECT DISTINCT ON (id) id, amount FROM orders KEEP LAST WITHIN '10 minutes';
