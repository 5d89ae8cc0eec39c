-- Calls of one number that began within a minute of each other, too far apart for one telephone.
--
-- Shows: a self-join on a key and a band, arithmetic on pairs, a condition on what it gives.
--        Records come when a call ends, so two of them may be ten minutes apart.
-- Run:   tidegate run examples/far_calls.sql --master none

CREATE STREAM calls FROM 'generator:calls?rows=20000&rate=20&keys=20000';

CREATE STREAM pairs AS
SELECT a.src, unix_seconds(b.start_time) - unix_seconds(a.start_time) AS apart,
       2 * 6371 * ASIN(SQRT(POWER(SIN(RADIANS(b.lat - a.lat) / 2), 2)
           + COS(RADIANS(a.lat)) * COS(RADIANS(b.lat)) * POWER(SIN(RADIANS(b.lon - a.lon) / 2), 2))) AS km
FROM calls AS a [RANGE 10 MINUTES] JOIN calls AS b [RANGE 10 MINUTES]
ON a.src = b.src AND unix_seconds(b.start_time) - unix_seconds(a.start_time) BETWEEN 1 AND 60;

SELECT src, apart, ROUND(km) AS km FROM pairs WHERE km > 50;
