WITH windows AS (
    SELECT w AS window_start, w + INTERVAL 45 SECONDS AS window_end
    FROM generate_series(TIMESTAMP '1995-03-07 23:50:00', TIMESTAMP '1995-03-08 00:10:00', INTERVAL 15 SECONDS) AS t(w)
)
SELECT window_start, window_end, AVG(size) AS mean, quantile_cont(size, 0.5) AS median, COUNT(*) AS packets
FROM windows JOIN read_csv('../input/packets.csv') ON ts >= window_start AND ts < window_end
WHERE protocol = 'tcp'
GROUP BY ALL
ORDER BY window_end;
