-- NULL is a group, in either key; a group of NULL values has the sum NULL and the count 0.
CREATE STREAM readings FROM 'readings.csv';

SELECT sensor, zone, COUNT(*) AS n, COUNT(v) AS known, SUM(v) AS total, MIN(v) AS low, MAX(v) AS high
FROM readings [RANGE 1 MINUTE]
GROUP BY sensor, zone;
