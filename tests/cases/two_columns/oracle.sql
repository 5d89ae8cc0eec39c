WITH windows AS (
    SELECT w AS window_start, w + INTERVAL 40 SECONDS AS window_end
    FROM generate_series(TIMESTAMP '2024-06-01 07:59:00', TIMESTAMP '2024-06-01 08:02:00', INTERVAL 20 SECONDS) AS t(w)
),
members AS (
    SELECT * FROM windows
    JOIN read_csv('trips.csv', types = {'card': 'BOOLEAN'}) ON ts >= window_start AND ts < window_end
),
groups AS (
    SELECT window_start, window_end, route,
           NULLIF(CORR(fare, tip), 'NaN'::DOUBLE) AS corr,
           COVAR_SAMP(fare, tip) AS sample,
           COVAR_POP(fare, tip) FILTER (WHERE card) AS population,
           FIRST(driver ORDER BY fare, ts) FILTER (WHERE fare IS NOT NULL) AS cheap,
           FIRST(driver ORDER BY fare DESC, ts) FILTER (WHERE fare IS NOT NULL) AS dear,
           FIRST(driver ORDER BY tip DESC, ts) FILTER (WHERE tip IS NOT NULL AND NOT card) AS cash,
           BOOL_AND(fare > 5) AS every_fare,
           BOOL_OR(card) AS any_card,
           COUNT(*) FILTER (WHERE tip > 1) AS tipped,
           COUNT(DISTINCT driver) AS drivers,
           FIRST(tip ORDER BY fare DESC, ts) FILTER (WHERE fare IS NOT NULL) AS tip
    FROM members
    GROUP BY ALL
    HAVING COUNT(*) FILTER (WHERE fare > 0) > 0
)
SELECT * EXCLUDE (tip) FROM groups
QUALIFY row_number() OVER (PARTITION BY window_end ORDER BY tip DESC NULLS LAST, route NULLS FIRST) <= 3
ORDER BY window_end, tip DESC NULLS LAST, route NULLS FIRST;
