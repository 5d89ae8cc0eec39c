WITH rides AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('rides.csv')),
zones AS (SELECT *, ROW_NUMBER() OVER () AS place FROM read_csv('zones.csv')),
joined AS (SELECT r.*, z.name FROM rides AS r LEFT JOIN zones AS z ON r.zone = z.id WHERE r.zone IS DISTINCT FROM 3),
ends AS (SELECT unnest(range(TIMESTAMP '2024-05-06 12:00:05', TIMESTAMP '2024-05-06 12:00:40', INTERVAL 5 SECONDS)) AS e)
SELECT e - INTERVAL 10 SECONDS AS window_start, e AS window_end, name, COUNT(*) AS n, SUM(fare)::BIGINT AS fares, MIN_BY(ride, seq) AS first
FROM ends JOIN joined ON ts >= e - INTERVAL 10 SECONDS AND ts < e
GROUP BY e, name ORDER BY e, name NULLS FIRST;
