-- Fares by the name of the zone; zones without a name are one group. Rides of zone 3 are left out.
CREATE STREAM rides FROM 'rides.csv';
CREATE TABLE zones FROM 'zones.csv';
CREATE TABLE closed FROM 'closed.csv';

SELECT z.name, COUNT(*) AS n, SUM(r.fare) AS fares, FIRST(r.ride) AS first
FROM rides AS r [RANGE 10 SECONDS SLIDE 5 SECONDS] ANTI JOIN closed AS c ON r.zone = c.id
LEFT JOIN zones AS z ON r.zone = z.id
GROUP BY z.name;
