-- Days from midnight to midnight in New York: that of March has 23 hours, that of November 25.
CREATE STREAM trips FROM 'trips.csv';

SELECT zone, COUNT(*) AS n, SUM(fare) AS fare
FROM trips [RANGE 1 DAY TIME ZONE 'America/New_York']
GROUP BY zone;
