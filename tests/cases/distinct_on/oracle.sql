WITH RECURSIVE base AS (
    SELECT *, row_number() OVER (ORDER BY ts) AS place, dense_rank() OVER (ORDER BY id) AS k
    FROM read_csv('orders.csv', types = {'ts': 'TIMESTAMP'})
    WHERE amount > 0
), kept AS (
    SELECT k, min(place) AS place FROM base GROUP BY k
    UNION ALL
    SELECT b.k, min(b.place)
    FROM kept JOIN base AS x USING (place)
    JOIN base AS b ON b.k = x.k AND b.ts > x.ts + INTERVAL 10 MINUTES
    GROUP BY b.k
)
SELECT ts, id, amount FROM base WHERE place IN (SELECT place FROM kept) ORDER BY place;
