WITH rides AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('rides.csv')),
prices AS (SELECT * FROM read_csv('prices.csv') WHERE since IS NOT NULL)
SELECT r.ts, r.ride, r.zone, p.price FROM rides AS r ASOF LEFT JOIN prices AS p ON r.zone = p.zone AND r.ts >= p.since
ORDER BY r.ts, r.seq;
