-- Two streams of other shapes as one; at equal times the first one counts as earlier.
CREATE STREAM web FROM 'web.csv';
CREATE STREAM app FROM 'app.json' TIME seen;

SELECT page, COUNT(*) AS n, SUM(ms) AS ms, FIRST(place) AS first, LAST(place) AS last
FROM (
    SELECT page, CAST(ms AS DOUBLE) AS ms, 'web' AS place FROM web
    UNION ALL
    SELECT screen, seconds * 1000, 'app' FROM app
) [RANGE 10 SECONDS SLIDE 5 SECONDS]
WHERE page IS NULL OR page <> 'pay' OR ms > 1000
GROUP BY page;
