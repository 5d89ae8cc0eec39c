-- Query 3 of TPC-H as streams: customers of one segment, orders within 60 days of their coming, lines shipped within 30
-- days of their order; the ten orders of each eight weeks with the most revenue to come.
CREATE STREAM customer FROM '../input/customer.csv' TIME c_since;
CREATE STREAM orders FROM '../input/orders.csv' TIME o_orderdate;
CREATE STREAM lineitem FROM '../input/lineitem.csv' TIME l_shipdate;
CREATE STREAM placed AS
SELECT o.o_orderkey, o.o_orderdate, o.o_shippriority
FROM customer AS c [RANGE 60 DAYS] JOIN orders AS o [RANGE 0 SECONDS] ON c.c_custkey = o.o_custkey
WHERE c.c_mktsegment = 'BUILDING' AND o.o_orderdate < TIMESTAMP '1995-04-15 00:00:00';
CREATE STREAM shipped AS
SELECT p.o_orderkey, p.o_orderdate, p.o_shippriority,
       CAST(l.l_extendedprice AS DECIMAL(15, 2)) * (1 - CAST(l.l_discount AS DECIMAL(15, 2))) AS revenue
FROM placed AS p [RANGE 30 DAYS] JOIN lineitem AS l [RANGE 0 SECONDS] ON p.o_orderkey = l.l_orderkey
WHERE l.l_shipdate > TIMESTAMP '1995-02-01 00:00:00';

SELECT o_orderkey, SUM(revenue) AS revenue, o_orderdate, o_shippriority
FROM shipped [RANGE 56 DAYS SLIDE 28 DAYS]
GROUP BY o_orderkey, o_orderdate, o_shippriority
ORDER BY revenue DESC, o_orderdate LIMIT 10;
