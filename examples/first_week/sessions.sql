-- How long do people stay on the phone, with breaks of five minutes at most?
-- Run: tidegate run examples/first_week/sessions.sql --master none
CREATE STREAM calls FROM 'generator:calls?rows=20000&rate=5&keys=300' TIME ts;
SELECT src, COUNT(*) AS calls, COUNT(DISTINCT dst) AS people
FROM calls [SESSION GAP 5 MINUTES]
GROUP BY src;
