WITH windows AS (
    SELECT to_timestamp(k * 240)::TIMESTAMP AS window_start, to_timestamp(k * 240 + 600)::TIMESTAMP AS window_end
    FROM range(epoch(TIMESTAMP '2024-02-29 23:00:00')::BIGINT // 240, epoch(TIMESTAMP '2024-03-01 02:00:00')::BIGINT // 240) AS t(k)
), calls AS (SELECT called::TIMESTAMP AS called, secs FROM read_json('calls.json'))
SELECT window_start, window_end, COUNT(*) AS n, SUM(secs)::BIGINT AS secs, AVG(secs) AS mean, MAX(secs) - MIN(secs) AS spread
FROM windows JOIN calls ON called >= window_start AND called < window_end
GROUP BY ALL
ORDER BY window_end;
