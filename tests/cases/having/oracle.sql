WITH windows AS (
    SELECT w AS window_start, w + INTERVAL 30 SECONDS AS window_end
    FROM generate_series(TIMESTAMP '2024-06-01 07:59:00', TIMESTAMP '2024-06-01 08:02:00', INTERVAL 15 SECONDS) AS t(w)
)
SELECT window_start, window_end, customer, COUNT(*) AS n, SUM(amount)::BIGINT AS amount
FROM windows JOIN read_csv('orders.csv') ON ts >= window_start AND ts < window_end
GROUP BY ALL
HAVING COUNT(*) >= 2 AND SUM(amount) > 5
ORDER BY window_end, customer NULLS FIRST;
