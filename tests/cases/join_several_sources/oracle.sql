WITH l AS (
    SELECT *, 0 AS source, ROW_NUMBER() OVER () AS seq FROM read_csv('l1.csv')
    UNION ALL SELECT *, 1, ROW_NUMBER() OVER () FROM read_csv('l2.csv')
), r AS (
    SELECT *, 0 AS source, ROW_NUMBER() OVER () AS seq FROM read_csv('r1.csv')
    UNION ALL SELECT *, 1, ROW_NUMBER() OVER () FROM read_csv('r2.csv')
    UNION ALL SELECT *, 2, ROW_NUMBER() OVER () FROM read_csv('r3.csv')
)
SELECT greatest(l.ts, r.ts) AS ts, l.id AS left_id, r.id AS right_id, l.k
FROM l JOIN r
ON abs(epoch_us(l.ts) - epoch_us(r.ts)) <= 4000000 AND l.k = r.k
ORDER BY greatest(l.ts, r.ts),
         CASE WHEN l.ts <= r.ts THEN 1 ELSE 0 END,
         CASE WHEN l.ts <= r.ts THEN r.source ELSE l.source END,
         CASE WHEN l.ts <= r.ts THEN r.seq ELSE l.seq END,
         CASE WHEN l.ts <= r.ts THEN l.ts ELSE r.ts END,
         CASE WHEN l.ts <= r.ts THEN l.source ELSE r.source END,
         CASE WHEN l.ts <= r.ts THEN l.seq ELSE r.seq END;
