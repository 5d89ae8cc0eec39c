-- How many calls are there this hour, so far?
-- Run: tidegate run examples/gallery/early_rows.sql --master none
CREATE STREAM calls FROM 'generator:calls?rows=20000&rate=2&keys=300' TIME ts;
SELECT COUNT(*) AS calls
FROM calls [RANGE 1 HOUR]
EMIT EVERY '10 minutes';
