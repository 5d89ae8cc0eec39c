WITH calls AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('../input/calls.csv')),
overlapping AS (
    SELECT greatest(a.ts, b.ts) AS ts, CASE WHEN a.src IN (b.src, b.dst) THEN a.src ELSE a.dst END AS number,
           a.src AS one, a.dst AS with_one, b.src AS other, b.dst AS with_other, b.start_time AS since,
           a.ts <= b.ts AS forth, a.seq AS a_seq, b.seq AS b_seq
    FROM calls AS a JOIN calls AS b
    ON abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 60000000 AND (a.src IN (b.src, b.dst) OR a.dst IN (b.src, b.dst))
       AND a.start_time < b.start_time AND b.start_time < a.end_time
), windows AS (
    SELECT w AS window_start, w + INTERVAL 10 MINUTES AS window_end
    FROM generate_series(TIMESTAMP '2012-01-02 09:00:00', TIMESTAMP '2012-01-02 11:00:00', INTERVAL 2 MINUTES) AS t(w)
)
SELECT window_start, window_end, number, COUNT(*) AS n, MIN(since) AS since
FROM windows JOIN overlapping ON ts >= window_start AND ts < window_end
GROUP BY window_start, window_end, number
HAVING COUNT(*) > 5
QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY COUNT(*) DESC, number) <= 3
ORDER BY window_end, n DESC, number;
