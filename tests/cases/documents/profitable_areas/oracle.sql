WITH rides AS (
    SELECT *, 1 AS source, ROW_NUMBER() OVER () AS seq FROM read_csv('../input/rides1.csv')
    UNION ALL
    SELECT *, 2, ROW_NUMBER() OVER () FROM read_csv('../input/rides2.csv')
), windows AS (
    SELECT w AS window_end
    FROM generate_series(TIMESTAMP '2013-01-01 07:00:00', TIMESTAMP '2013-01-01 10:00:00', INTERVAL 5 MINUTES) AS t(w)
), profits AS (
    SELECT window_end, pickup_cell AS cell, quantile_cont(fare + tip, 0.5) AS profit
    FROM windows JOIN rides ON dropoff_time >= window_end - INTERVAL 15 MINUTES AND dropoff_time < window_end
    GROUP BY ALL
), newest AS (
    SELECT window_end, medallion, LAST(dropoff_cell ORDER BY dropoff_time, source, seq) AS cell
    FROM windows JOIN rides ON dropoff_time >= window_end - INTERVAL 30 MINUTES AND dropoff_time < window_end
    GROUP BY window_end, medallion
), empties AS (
    SELECT window_end, cell, COUNT(*) AS taxis FROM newest GROUP BY ALL
)
SELECT window_end - INTERVAL 5 MINUTES AS window_start, window_end, cell, profit / taxis AS profitability, profit, taxis
FROM profits JOIN empties USING (window_end, cell)
QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY profitability DESC NULLS LAST, cell) <= 10
ORDER BY window_end, profitability DESC NULLS LAST, cell;
