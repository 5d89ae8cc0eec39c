WITH calls AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('../input/calls.csv')),
pairs AS (
    SELECT greatest(a.ts, b.ts) AS ts, a.src, date_diff('second', a.start_time, b.start_time) AS apart,
           2 * 6371 * ASIN(SQRT(POWER(SIN(RADIANS(b.lat - a.lat) / 2), 2)
               + COS(RADIANS(a.lat)) * COS(RADIANS(b.lat)) * POWER(SIN(RADIANS(b.lon - a.lon) / 2), 2))) AS km,
           a.ts <= b.ts AS forth, a.seq AS one, b.seq AS other
    FROM calls AS a JOIN calls AS b
    ON abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 600000000 AND a.src = b.src
       AND date_diff('second', a.start_time, b.start_time) BETWEEN 1 AND 60
)
SELECT ts, src, apart, ROUND(km / apart * 3600) AS kmh
FROM pairs
WHERE km > 50
ORDER BY ts, forth, CASE WHEN forth THEN other ELSE one END, CASE WHEN forth THEN one ELSE other END;
