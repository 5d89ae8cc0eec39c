WITH r AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('rides.csv')),
w AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('weather.csv'))
SELECT greatest(r.ts, w.ts) AS ts, r.id AS ride, w.id AS report, r.zone, r.fare, w.rain
FROM r JOIN w
ON abs(epoch_us(r.ts) - epoch_us(w.ts)) <= 15000000 AND r.zone = w.zone
WHERE r.fare > 10 AND w.rain IS NOT NULL AND (w.rain OR r.fare < 40)
ORDER BY greatest(r.ts, w.ts),
         CASE WHEN r.ts <= w.ts THEN 1 ELSE 0 END,
         CASE WHEN r.ts <= w.ts THEN w.seq ELSE r.seq END,
         CASE WHEN r.ts <= w.ts THEN r.seq ELSE w.seq END;
