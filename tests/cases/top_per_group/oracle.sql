WITH counts AS (
    SELECT time_bucket(INTERVAL 10 SECONDS, ts) AS window_start,
           time_bucket(INTERVAL 10 SECONDS, ts) + INTERVAL 10 SECONDS AS window_end,
           channel, page, COUNT(*) AS n
    FROM read_csv('views.csv')
    GROUP BY ALL
)
SELECT *
FROM counts
QUALIFY ROW_NUMBER() OVER (
    PARTITION BY window_end, channel ORDER BY n DESC, page NULLS FIRST) <= 2
ORDER BY window_end, n DESC, channel NULLS FIRST, page NULLS FIRST;
