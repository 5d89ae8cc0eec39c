WITH s AS (
    SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('../input/s1.csv')
    UNION ALL
    SELECT *, 1000 + ROW_NUMBER() OVER () FROM read_csv('../input/s2.csv')
)
SELECT FIRST_VALUE(ts) OVER last AS window_start, ts AS window_end, (SUM(m) OVER last)::BIGINT AS m
FROM s
WINDOW last AS (ORDER BY ts, seq ROWS 4 PRECEDING)
QUALIFY ROW_NUMBER() OVER (ORDER BY ts, seq) >= 5
ORDER BY ts, seq;
