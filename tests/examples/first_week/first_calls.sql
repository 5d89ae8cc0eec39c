WITH RECURSIVE numbered AS (FROM calls SELECT ts, src, dst, district),
kept(ts, src, dst, district) AS (
  SELECT MIN(ts), src, arg_min(dst, ts), arg_min(district, ts) FROM numbered GROUP BY src
  UNION ALL
  SELECT MIN(c.ts), c.src, arg_min(c.dst, c.ts), arg_min(c.district, c.ts) FROM kept AS k JOIN numbered AS c
  ON c.src = k.src AND c.ts - k.ts > INTERVAL 20 MINUTES GROUP BY c.src, k.ts)
SELECT ts, src, dst, district FROM kept ORDER BY ts;
