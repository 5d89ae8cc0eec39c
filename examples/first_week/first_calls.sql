-- When did each number begin to call, not counting calls in the 20 minutes after?
-- Run: tidegate run examples/first_week/first_calls.sql --master none
CREATE STREAM calls FROM 'generator:calls?rows=20000&rate=5&keys=300' TIME ts;
SELECT DISTINCT ON (src) src, dst, district
FROM calls KEEP FIRST WITHIN '20 minutes';
