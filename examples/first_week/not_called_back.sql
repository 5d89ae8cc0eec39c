-- Which calls were not returned within ten minutes?
-- Run: tidegate run examples/first_week/not_called_back.sql --master none
CREATE STREAM calls FROM 'generator:calls?rows=20000&rate=5&keys=300' TIME ts;
SELECT a.src, a.dst, a.district
FROM calls AS a [RANGE 10 MINUTES] ANTI JOIN calls AS b [RANGE 0 SECONDS]
ON a.src = b.dst AND a.dst = b.src;
