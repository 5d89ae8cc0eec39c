-- A visit lasts until a visitor has done nothing for half a minute; NULL is a visitor too.
CREATE STREAM clicks FROM 'clicks.csv' DISORDER 10 SECONDS;

SELECT visitor, COUNT(*) AS n, SUM(paid) AS paid, LAST(page) AS left_at
FROM clicks [SESSION GAP 30 SECONDS]
GROUP BY visitor
HAVING COUNT(*) > 1;
