WITH marked AS (
  SELECT *, COALESCE(ts - LAG(ts) OVER (PARTITION BY src ORDER BY ts) > INTERVAL 5 MINUTES, TRUE) AS new FROM calls),
numbered AS (SELECT *, SUM(new::INT) OVER (PARTITION BY src ORDER BY ts) AS session FROM marked)
SELECT MIN(ts) AS window_start, MAX(ts) + INTERVAL 5 MINUTES AS window_end,
       src, COUNT(*) AS calls, COUNT(DISTINCT dst) AS people
FROM numbered GROUP BY src, session ORDER BY window_end, src;
