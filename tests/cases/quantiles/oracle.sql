WITH windows AS (
    SELECT w AS window_start, w + INTERVAL 10 SECONDS AS window_end
    FROM generate_series(TIMESTAMP '2024-10-31 23:59:00', TIMESTAMP '2024-11-01 00:01:00', INTERVAL 5 SECONDS) AS t(w)
)
SELECT window_start, window_end, host, quantile_cont(ms, 0.5) AS med, quantile_cont(ms, 0.9) AS p90,
       COUNT(DISTINCT code) AS codes, VAR_SAMP(ms) AS var, STDDEV_SAMP(ms) AS dev,
       FIRST(code ORDER BY ts) AS first, LAST(code ORDER BY ts) AS last
FROM windows JOIN read_csv('latency.csv') ON ts >= window_start AND ts < window_end
GROUP BY ALL
ORDER BY window_end, host;
