WITH a AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('alerts.csv')),
l AS (SELECT *, ROW_NUMBER() OVER () AS seq FROM read_csv('logins.csv'))
SELECT greatest(a.ts, l.ts) AS ts, a.id AS alert, l.id AS login, a.host, a.ts AS alerted, l.ts AS logged_in
FROM a JOIN l
ON (a.ts <= l.ts AND l.ts - a.ts <= INTERVAL 15 SECONDS OR l.ts <= a.ts AND a.ts - l.ts <= INTERVAL 2 SECONDS)
   AND a.host = l.host
ORDER BY greatest(a.ts, l.ts),
         CASE WHEN a.ts <= l.ts THEN 1 ELSE 0 END,
         CASE WHEN a.ts <= l.ts THEN l.seq ELSE a.seq END,
         CASE WHEN a.ts <= l.ts THEN a.seq ELSE l.seq END;
