WITH calls AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('calls.csv'))
SELECT greatest(a.ended, b.ended) AS ts, a.id AS first, b.id AS second, greatest(a.started, b.started) AS since
FROM calls AS a JOIN calls AS b
ON abs(epoch_us(a.ended) - epoch_us(b.ended)) <= 30000000
   AND a.id < b.id AND (a.src = b.src OR a.src = b.dst OR a.dst = b.src OR a.dst = b.dst)
   AND a.started < b.ended AND b.started < a.ended
ORDER BY greatest(a.ended, b.ended),
         CASE WHEN a.ended <= b.ended THEN 1 ELSE 0 END,
         CASE WHEN a.ended <= b.ended THEN b.seq ELSE a.seq END,
         CASE WHEN a.ended <= b.ended THEN a.seq ELSE b.seq END;
