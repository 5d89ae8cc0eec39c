SELECT time_bucket(INTERVAL 15 MINUTES, ts) AS window_start, window_start + INTERVAL 15 MINUTES AS window_end,
       name, COUNT(*) AS calls
FROM calls JOIN districts AS d ON calls.district = d.id
GROUP BY ALL ORDER BY window_end, name;
