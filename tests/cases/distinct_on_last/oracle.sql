WITH RECURSIVE base AS (
    SELECT *, row_number() OVER (ORDER BY ts) AS place, dense_rank() OVER (ORDER BY id) AS k
    FROM read_csv('orders.csv', types = {'ts': 'TIMESTAMP'})
), begun AS (
    SELECT k, min(place) AS place FROM base GROUP BY k
    UNION ALL
    SELECT b.k, min(b.place)
    FROM begun JOIN base AS x USING (place)
    JOIN base AS b ON b.k = x.k AND b.ts > x.ts + INTERVAL 10 MINUTES
    GROUP BY b.k
), last AS (
    SELECT x.ts AS first, max(b.place) AS place
    FROM begun JOIN base AS x USING (place)
    JOIN base AS b ON b.k = x.k AND b.place >= x.place AND b.ts <= x.ts + INTERVAL 10 MINUTES
    GROUP BY x.ts, x.place
)
SELECT ts, id, amount FROM last JOIN base USING (place) ORDER BY first, place;
