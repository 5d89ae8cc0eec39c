WITH trades AS (
    SELECT ts, sym, price, 0 AS source, ROW_NUMBER() OVER () AS seq FROM read_csv('east.csv')
    UNION ALL SELECT ts, sym, price, 1, ROW_NUMBER() OVER () FROM read_csv('west.csv')
    UNION ALL SELECT ts, sym, price, 2, ROW_NUMBER() OVER () FROM read_csv('folder/1.csv')
    UNION ALL SELECT ts, sym, price, 3, ROW_NUMBER() OVER () FROM read_csv('folder/2.csv')
)
SELECT time_bucket(INTERVAL 5 SECONDS, ts) AS window_start,
       time_bucket(INTERVAL 5 SECONDS, ts) + INTERVAL 5 SECONDS AS window_end, sym,
       FIRST(price ORDER BY ts, source, seq) AS open, MAX(price) AS high, MIN(price) AS low,
       LAST(price ORDER BY ts, source, seq) AS close, COUNT(*) AS n
FROM trades
GROUP BY ALL
ORDER BY window_end, sym;
