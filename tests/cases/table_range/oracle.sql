WITH rides AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('rides.csv')),
classes AS (SELECT *, ROW_NUMBER() OVER () AS place FROM read_csv('zones.csv'))
SELECT r.ts, r.ride, r.fare, c.name FROM rides AS r JOIN classes AS c ON r.fare BETWEEN c.low AND c.high
WHERE c.name <> 'West' OR r.fare > 25
ORDER BY r.ts, r.seq, c.place;
