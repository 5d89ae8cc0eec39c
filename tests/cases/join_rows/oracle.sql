WITH b AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('bids.csv')),
a AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('asks.csv')),
bids AS (SELECT *, (SELECT count(*) FROM a WHERE a.ts < b.ts) AS before FROM b),
asks AS (SELECT *, (SELECT count(*) FROM b WHERE b.ts <= a.ts) AS before FROM a)
SELECT greatest(b.ts, a.ts) AS ts, b.id AS bid, a.id AS ask, b.item, b.price - a.price AS gain
FROM bids AS b JOIN asks AS a
ON (b.ts <= a.ts AND b.seq > a.before - 5 OR a.ts < b.ts AND a.seq > b.before - 3)
   AND b.item = a.item AND b.price >= a.price - 2
WHERE a.price < 18
ORDER BY greatest(b.ts, a.ts),
         CASE WHEN b.ts <= a.ts THEN 1 ELSE 0 END,
         CASE WHEN b.ts <= a.ts THEN a.seq ELSE b.seq END,
         CASE WHEN b.ts <= a.ts THEN b.seq ELSE a.seq END;
