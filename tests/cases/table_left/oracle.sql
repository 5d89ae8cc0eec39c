WITH rides AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('rides.csv')),
zones AS (SELECT *, ROW_NUMBER() OVER () AS place FROM read_csv('zones.csv'))
SELECT r.ts, r.ride, z.name, r.fare FROM rides AS r LEFT JOIN zones AS z ON r.zone = z.id AND r.fare < 25
ORDER BY r.ts, r.seq, z.place;
