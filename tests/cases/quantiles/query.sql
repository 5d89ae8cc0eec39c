-- The functions that need more than a total: quantiles, distinct values, spread, first and last.
CREATE STREAM latency FROM 'latency.csv';

SELECT host, MEDIAN(ms) AS med, QUANTILE(ms, 0.9) AS p90, COUNT(DISTINCT code) AS codes,
       VAR(ms) AS var, STDDEV(ms) AS dev, FIRST(code) AS first, LAST(code) AS last
FROM latency [RANGE 10 SECONDS SLIDE 5 SECONDS]
GROUP BY host;
