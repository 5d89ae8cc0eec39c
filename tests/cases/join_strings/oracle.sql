WITH l AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('l.csv')),
r AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('r.csv'))
SELECT greatest(l.ts, r.ts) AS ts, l.id AS left_id, r.id AS right_id, l.name AS left_name, r.name AS right_name, r.city
FROM l JOIN r
ON abs(epoch_us(l.ts) - epoch_us(r.ts)) <= 12000000 AND l.city = r.city AND l.name <= r.name
ORDER BY greatest(l.ts, r.ts),
         CASE WHEN l.ts <= r.ts THEN 1 ELSE 0 END,
         CASE WHEN l.ts <= r.ts THEN r.seq ELSE l.seq END,
         CASE WHEN l.ts <= r.ts THEN l.seq ELSE r.seq END;
