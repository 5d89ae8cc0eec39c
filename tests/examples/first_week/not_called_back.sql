SELECT ts, src, dst, district FROM calls AS a
WHERE NOT EXISTS (FROM calls AS b WHERE a.src = b.dst AND a.dst = b.src
                  AND b.ts - a.ts BETWEEN INTERVAL 0 SECONDS AND INTERVAL 10 MINUTES)
ORDER BY ts;
