SELECT date_trunc('minute', ts) AS window_start,
       date_trunc('minute', ts) + INTERVAL 1 MINUTE AS window_end,
       sensor, zone, COUNT(*) AS n, COUNT(v) AS known, SUM(v)::BIGINT AS total, MIN(v) AS low, MAX(v) AS high
FROM read_csv('readings.csv')
GROUP BY ALL
ORDER BY window_end, sensor NULLS FIRST, zone NULLS FIRST;
