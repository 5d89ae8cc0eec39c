WITH r AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('r.csv')),
s AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('s.csv'))
SELECT greatest(r.ts, s.ts) AS ts, r.x, r.y, s.a, s.b
FROM r JOIN s
ON abs(epoch_us(r.ts) - epoch_us(s.ts)) <= 20000000
   AND r.x >= s.a - 10 AND r.x <= s.a + 10 AND r.y >= s.b - 10 AND r.y <= s.b + 10
ORDER BY greatest(r.ts, s.ts),
         CASE WHEN r.ts <= s.ts THEN 1 ELSE 0 END,
         CASE WHEN r.ts <= s.ts THEN s.seq ELSE r.seq END,
         CASE WHEN r.ts <= s.ts THEN r.seq ELSE s.seq END;
