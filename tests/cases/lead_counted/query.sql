-- How many trades are decided in each ten seconds by a later one above 3; those that none follows count where the input ends.
CREATE STREAM trades FROM 'trades.csv';

SELECT COUNT(*) AS n, COUNT(next) AS known
FROM (
  SELECT LEAD(CASE WHEN price > 3 THEN price END) IGNORE NULLS OVER (PARTITION BY symbol ORDER BY ts) AS next
  FROM trades
) [RANGE 10 SECONDS];
