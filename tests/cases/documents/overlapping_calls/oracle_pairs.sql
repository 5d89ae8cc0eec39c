WITH calls AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('../input/calls.csv')),
overlapping AS (
    SELECT greatest(a.ts, b.ts) AS ts, CASE WHEN a.src IN (b.src, b.dst) THEN a.src ELSE a.dst END AS number,
           a.src AS one, a.dst AS with_one, b.src AS other, b.dst AS with_other, b.start_time AS since,
           a.ts <= b.ts AS forth, a.seq AS a_seq, b.seq AS b_seq
    FROM calls AS a JOIN calls AS b
    ON abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 60000000 AND (a.src IN (b.src, b.dst) OR a.dst IN (b.src, b.dst))
       AND a.start_time < b.start_time AND b.start_time < a.end_time
)
SELECT ts, number, one, with_one, other, with_other, since
FROM overlapping
ORDER BY ts, forth, CASE WHEN forth THEN b_seq ELSE a_seq END, CASE WHEN forth THEN a_seq ELSE b_seq END;
