-- The two busiest pages of each channel and window; equal counts stand in the order of the key.
CREATE STREAM views FROM 'views.csv';

SELECT channel, page, COUNT(*) AS n
FROM views [RANGE 10 SECONDS]
GROUP BY channel, page
ORDER BY n DESC LIMIT 2 BY channel;
