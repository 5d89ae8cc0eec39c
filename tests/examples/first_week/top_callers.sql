SELECT window_start, window_start + INTERVAL 30 MINUTES AS window_end, region, src, COUNT(*) AS calls
FROM (SELECT *, time_bucket(INTERVAL 30 MINUTES, ts) AS window_start, district % 5 AS region FROM calls)
GROUP BY window_start, region, src
QUALIFY ROW_NUMBER() OVER (PARTITION BY window_start, region ORDER BY calls DESC, src) <= 3
ORDER BY window_end, region, calls DESC, src;
