-- Lines that are no object, or have no time; a lacking value is NULL; blank lines do not count.
CREATE STREAM events FROM 'events.json' DISORDER 2 SECONDS;

SELECT user, COUNT(*) AS c, SUM(n) AS n
FROM events [RANGE 5 SECONDS]
GROUP BY user;
