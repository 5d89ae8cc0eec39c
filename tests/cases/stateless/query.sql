-- Each tuple that passes, in the total order: by time, then by source, then as it came.
CREATE STREAM sales FROM 'a.csv', 'b.csv';

SELECT UPPER(name) AS name, n * price AS total, CASE WHEN n >= 5 THEN 'many' ELSE 'few' END AS size
FROM sales
WHERE n <> 0;
