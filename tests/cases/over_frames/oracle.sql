WITH t AS (
    SELECT *, row_number() OVER () AS place
    FROM read_csv('trades.csv', types = {'ts': 'TIMESTAMP'})
)
SELECT ts, symbol, price,
       (SUM(price) OVER (PARTITION BY symbol ORDER BY ts))::BIGINT AS so_far,
       COUNT(*) OVER (
           PARTITION BY symbol ORDER BY ts
           RANGE BETWEEN INTERVAL 5 SECONDS PRECEDING AND CURRENT ROW) AS recent,
       MAX(price) OVER (ORDER BY place ROWS 2 PRECEDING) AS highest,
       LAG(price, 1, 0) OVER (PARTITION BY symbol ORDER BY place) AS before
FROM t
WHERE price > 0
ORDER BY place;
