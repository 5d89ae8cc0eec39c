-- Who are the three busiest callers of each district, every half hour?
-- Run: tidegate run examples/first_week/top_callers.sql --master none
CREATE STREAM calls FROM 'generator:calls?rows=20000&rate=5&keys=300' TIME ts;
SELECT district % 5 AS region, src, COUNT(*) AS calls
FROM calls [RANGE 30 MINUTES]
GROUP BY district % 5, src
ORDER BY region, calls DESC, src LIMIT 3 BY region;
