-- Which hashtags are used most, minute by minute?
-- Run: tidegate run examples/first_week/hashtags.sql --master none
CREATE STREAM tweets FROM 'generator:tweets?rows=10000&rate=50' TIME ts;
CREATE STREAM tags AS SELECT EXPLODE(SPLIT(hashtags, ' ')) AS tag FROM tweets WHERE hashtags <> '';
SELECT tag, COUNT(*) AS n FROM tags [RANGE 1 MINUTE]
GROUP BY tag ORDER BY n DESC, tag LIMIT 5;
