-- The last hundred hedges, twenty by twenty: how far the prices of the two companies were from their averages.
--
-- Shows: a window of tuples, [ROWS n SLIDE m], over the pairs of a join. It counts pairs, not time:
--        busy seconds have many results, quiet ones none.
-- Run:   tidegate run examples/rows_over_join.sql --master none
-- Then:  GROUP BY one at the end of the query counts a hundred pairs for each company.

CREATE STREAM trades FROM 'generator:trades?rows=5000&rate=1000' TIME ts;

SELECT COUNT(DISTINCT one) AS companies, ROUND(100 * AVG(share), 3) AS percent, ROUND(100 * MAX(share), 3) AS most
FROM (
  SELECT l.symbol AS one, ABS(l.price - l.average_price) / l.average_price AS share
  FROM trades AS l [RANGE 50 MILLISECONDS] JOIN trades AS r [RANGE 50 MILLISECONDS]
  ON l.symbol < r.symbol
  AND l.price <> l.average_price
  AND ((r.price - r.average_price) / r.average_price) / ((l.price - l.average_price) / l.average_price)
      BETWEEN -1.05 AND -0.95
) [ROWS 100 SLIDE 20];
