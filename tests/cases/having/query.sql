-- Groups that fail the condition, or for which it is NULL, are left out of the window.
CREATE STREAM orders FROM 'orders.csv';

SELECT customer, COUNT(*) AS n, SUM(amount) AS amount
FROM orders [RANGE 30 SECONDS SLIDE 15 SECONDS]
GROUP BY customer
HAVING COUNT(*) >= 2 AND SUM(amount) > 5;
