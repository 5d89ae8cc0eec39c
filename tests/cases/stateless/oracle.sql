WITH sales AS (
    SELECT ts, name, n, price, 0 AS source, ROW_NUMBER() OVER () AS seq FROM read_csv('a.csv')
    UNION ALL SELECT ts, name, n, price, 1, ROW_NUMBER() OVER () FROM read_csv('b.csv')
)
SELECT ts, UPPER(name) AS name, n * price AS total, CASE WHEN n >= 5 THEN 'many' ELSE 'few' END AS size
FROM sales
WHERE n <> 0
ORDER BY ts, source, seq;
