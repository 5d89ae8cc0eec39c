WITH s AS (
    SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('../input/s1.csv')
    UNION ALL
    SELECT *, 1000 + ROW_NUMBER() OVER () FROM read_csv('../input/s2.csv')
), t AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('../input/t.csv')),
pairs AS (
    SELECT greatest(s.ts, t.ts) AS ts, s.l, s.m, t.v,
           ROW_NUMBER() OVER (ORDER BY greatest(s.ts, t.ts), s.ts <= t.ts, CASE WHEN s.ts <= t.ts THEN t.seq ELSE s.seq END,
                              CASE WHEN s.ts <= t.ts THEN s.ts ELSE t.ts END,
                              CASE WHEN s.ts <= t.ts THEN s.seq ELSE t.seq END) AS number
    FROM s JOIN t ON abs(epoch_us(s.ts) - epoch_us(t.ts)) <= 10000000 AND s.l = t.l
)
SELECT ts, l, m, v FROM pairs ORDER BY number;
