WITH totals AS (
    SELECT time_bucket(INTERVAL 10 SECONDS, ts) AS window_start,
           time_bucket(INTERVAL 10 SECONDS, ts) + INTERVAL 10 SECONDS AS window_end,
           party, SUM(weight)::BIGINT AS weight, COUNT(*) AS n
    FROM read_csv('votes.csv')
    GROUP BY ALL
), ranked AS (
    SELECT *, ROW_NUMBER() OVER (
        PARTITION BY window_end ORDER BY weight DESC NULLS LAST, party NULLS FIRST) AS place
    FROM totals
)
SELECT window_start, window_end, party, weight, n
FROM ranked
WHERE place <= 2
ORDER BY window_end, place;
