-- Nobody is asked to log in again within a minute of the last time; the gap may be longer.
CREATE STREAM clicks FROM 'clicks.csv';

SELECT COUNT(*) AS n, FIRST(id) AS first, LAST(id) AS last
FROM clicks [SESSION GAP 40 SECONDS MAX 60 SECONDS];
