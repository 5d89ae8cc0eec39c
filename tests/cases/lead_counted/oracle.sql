WITH t AS (
    SELECT *, row_number() OVER () AS place
    FROM read_csv('trades.csv', types = {'ts': 'TIMESTAMP'})
), known AS (
    SELECT LEAD(CASE WHEN price > 3 THEN ts END IGNORE NULLS) OVER (PARTITION BY symbol ORDER BY place) AS decided
    FROM t
), counted AS (
    SELECT time_bucket(INTERVAL 10 SECONDS, coalesce(decided, (SELECT max(ts) + INTERVAL 1 MICROSECOND FROM t))) AS window_start,
           COUNT(*) AS n, COUNT(decided) AS known
    FROM known GROUP BY 1
)
SELECT window_start, window_start + INTERVAL 10 SECONDS AS window_end, n, known FROM counted ORDER BY 1;
