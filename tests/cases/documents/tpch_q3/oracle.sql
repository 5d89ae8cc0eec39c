WITH shipped AS (
    SELECT l_shipdate AS ts, o_orderkey, o_orderdate, o_shippriority,
           l_extendedprice::DECIMAL(15, 2) * (1 - l_discount::DECIMAL(15, 2)) AS revenue
    FROM read_csv('../input/customer.csv') JOIN read_csv('../input/orders.csv')
    ON c_custkey = o_custkey AND o_orderdate >= c_since AND o_orderdate - c_since <= INTERVAL 60 DAYS
    JOIN read_csv('../input/lineitem.csv')
    ON o_orderkey = l_orderkey AND l_shipdate >= o_orderdate AND l_shipdate - o_orderdate <= INTERVAL 30 DAYS
    WHERE c_mktsegment = 'BUILDING' AND o_orderdate < TIMESTAMP '1995-04-15 00:00:00'
    AND l_shipdate > TIMESTAMP '1995-02-01 00:00:00'
), windows AS (
    SELECT make_timestamp(k * 28 * 86400000000) AS window_start, make_timestamp((k + 2) * 28 * 86400000000) AS window_end
    FROM range(320, 340) AS t(k)
)
SELECT window_start, window_end, o_orderkey, SUM(revenue) AS revenue, o_orderdate, o_shippriority
FROM windows JOIN shipped ON ts >= window_start AND ts < window_end
GROUP BY window_start, window_end, o_orderkey, o_orderdate, o_shippriority
QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY SUM(revenue) DESC, o_orderdate, o_orderkey) <= 10
ORDER BY window_end, revenue DESC, o_orderdate, o_orderkey;
