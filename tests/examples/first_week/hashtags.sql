SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS window_start, window_start + INTERVAL 1 MINUTE AS window_end,
       tag, COUNT(*) AS n
FROM (SELECT ts, UNNEST(string_split(hashtags, ' ')) AS tag FROM tweets WHERE hashtags <> '') GROUP BY window_start, tag
QUALIFY ROW_NUMBER() OVER (PARTITION BY window_start ORDER BY n DESC, tag) <= 5
ORDER BY window_end, n DESC, tag;
