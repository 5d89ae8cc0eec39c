-- StreamCloud's join: two calls of one number that began within a minute, how far apart they were, and which of them
-- were too far for one telephone. Calls are told when they end, so their records may be ten minutes apart.
CREATE STREAM calls FROM '../input/calls.csv' TIME ts;
CREATE STREAM pairs AS
SELECT a.src, unix_seconds(b.start_time) - unix_seconds(a.start_time) AS apart,
       2 * 6371 * ASIN(SQRT(POWER(SIN(RADIANS(b.lat - a.lat) / 2), 2)
           + COS(RADIANS(a.lat)) * COS(RADIANS(b.lat)) * POWER(SIN(RADIANS(b.lon - a.lon) / 2), 2))) AS km
FROM calls AS a [RANGE 10 MINUTES] JOIN calls AS b [RANGE 10 MINUTES]
ON a.src = b.src AND unix_seconds(b.start_time) - unix_seconds(a.start_time) BETWEEN 1 AND 60;

INSERT INTO distances SELECT src, apart, ROUND(km, 6) AS km FROM pairs;
INSERT INTO far SELECT src, apart, ROUND(km / apart * 3600) AS kmh FROM pairs WHERE km > 50;
