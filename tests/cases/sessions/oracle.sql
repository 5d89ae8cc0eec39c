WITH marked AS (
    SELECT *, coalesce(ts - lag(ts) OVER w > INTERVAL 30 SECONDS, true)::INT AS begins
    FROM read_csv('clicks.csv') WINDOW w AS (PARTITION BY visitor ORDER BY ts)
), numbered AS (
    SELECT *, sum(begins) OVER (PARTITION BY visitor ORDER BY ts) AS session FROM marked
)
SELECT min(ts) AS window_start, max(ts) + INTERVAL 30 SECONDS AS window_end, visitor,
       count(*) AS n, sum(paid)::BIGINT AS paid, last(page ORDER BY ts) AS left_at
FROM numbered
GROUP BY visitor, session
HAVING count(*) > 1
ORDER BY window_end, visitor NULLS FIRST;
