WITH local AS (
    SELECT *, date_trunc('day', timezone('America/New_York', timezone('UTC', ts))) AS day
    FROM read_csv('trips.csv')
), windows AS (
    SELECT zone, fare,
           timezone('UTC', timezone('America/New_York', day)) AS window_start,
           timezone('UTC', timezone('America/New_York', day + INTERVAL 1 DAY)) AS window_end
    FROM local
)
SELECT window_start, window_end, zone, count(*) AS n, sum(fare)::BIGINT AS fare
FROM windows
GROUP BY ALL
ORDER BY window_end, zone NULLS FIRST;
