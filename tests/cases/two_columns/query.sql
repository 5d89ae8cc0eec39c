-- Functions of two columns and of conditions, with NULL, ties and FILTER, in every clause.
CREATE STREAM trips FROM 'trips.csv';

SELECT route,
       CORR(fare, tip) AS corr,
       COVAR_SAMP(fare, tip) AS sample,
       COVAR_POP(fare, tip) FILTER (WHERE card) AS population,
       MIN_BY(driver, fare) AS cheap,
       MAX_BY(driver, fare) AS dear,
       MAX_BY(driver, tip) FILTER (WHERE NOT card) AS cash,
       EVERY(fare > 5) AS every_fare,
       ANY(card) AS any_card,
       COUNT_IF(tip > 1) AS tipped,
       APPROX_COUNT_DISTINCT(driver) AS drivers
FROM trips [RANGE 40 SECONDS SLIDE 20 SECONDS]
GROUP BY route
HAVING COUNT_IF(fare > 0) > 0
ORDER BY MAX_BY(tip, fare) DESC, route
LIMIT 3;
