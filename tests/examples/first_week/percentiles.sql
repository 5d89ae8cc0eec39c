SELECT time_bucket(INTERVAL 5 SECONDS, ts) AS window_start, window_start + INTERVAL 5 SECONDS AS window_end,
       protocol, QUANTILE_CONT(size, 0.5) AS half, QUANTILE_DISC(size, 0.95) AS most
FROM packets GROUP BY ALL ORDER BY window_end, protocol;
