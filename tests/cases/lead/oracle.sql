WITH t AS (
    SELECT *, row_number() OVER () AS place
    FROM read_csv('trades.csv', types = {'ts': 'TIMESTAMP'})
), known AS (
    SELECT ts, symbol, price, place,
           LEAD(price) OVER (PARTITION BY symbol ORDER BY place) AS next,
           LEAD(price, 2, -1) OVER (PARTITION BY symbol ORDER BY place) AS second,
           (SUM(price) OVER (ORDER BY ts))::BIGINT AS so_far,
           LEAD(ts, 2) OVER (PARTITION BY symbol ORDER BY place) AS decided
    FROM t
)
SELECT ts, symbol, price, next, second, so_far FROM known
ORDER BY decided NULLS LAST, place;
