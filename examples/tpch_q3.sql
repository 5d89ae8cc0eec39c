-- The orders that bring most, of those still to be shipped: query 3 of TPC-H, week by week.
--
-- Shows: a join of two streams that are months apart, an aggregate over it, the top ten per window.
--        An order waits for its lines in a window of 106 days; a line meets orders before it only.
-- Run:   tidegate run examples/tpch_q3.sql --master none

CREATE STREAM orders FROM 'generator:orders?rows=30000' TIME o_orderdate;
CREATE STREAM lineitem FROM 'generator:lineitem?rows=60000' TIME l_shipdate;

CREATE STREAM shipped AS
SELECT l.l_orderkey, o.o_orderdate, o.o_shippriority, l.l_extendedprice * (1 - l.l_discount) AS revenue
FROM orders AS o [RANGE 106 DAYS] JOIN lineitem AS l [RANGE 0 SECONDS] ON o.o_orderkey = l.l_orderkey
WHERE o.c_mktsegment = 'BUILDING'
AND o.o_orderdate < TIMESTAMP '1992-02-15 00:00:00' AND l.l_shipdate > TIMESTAMP '1992-02-15 00:00:00';

SELECT l_orderkey, SUM(revenue) AS revenue, o_orderdate, o_shippriority
FROM shipped [RANGE 7 DAYS]
GROUP BY l_orderkey, o_orderdate, o_shippriority
ORDER BY revenue DESC, o_orderdate LIMIT 10;
