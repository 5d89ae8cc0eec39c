-- Which orders have been shipped within 60 days, and which have not?
-- Run: tidegate run examples/first_week/late_shipments.sql --master none
CREATE STREAM orders FROM 'generator:orders?rows=30000' TIME o_orderdate;
CREATE STREAM lineitem FROM 'generator:lineitem?rows=30000' TIME l_shipdate;
SELECT o.o_orderkey AS number, o.c_mktsegment AS segment, l.l_linenumber AS line
FROM orders AS o [RANGE 60 DAYS] LEFT JOIN lineitem AS l [RANGE 0 SECONDS]
ON o.o_orderkey = l.l_orderkey;
