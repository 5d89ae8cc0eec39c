SELECT timezone('America/New_York', d) AS window_start,
       timezone('America/New_York', d + INTERVAL 1 DAY) AS window_end, rides, fare
FROM (SELECT date_trunc('day', timezone('America/New_York', dropoff_time))::TIMESTAMP AS d,
             COUNT(*) AS rides, ROUND(AVG(fare), 2) AS fare FROM rides GROUP BY d) ORDER BY window_end;
