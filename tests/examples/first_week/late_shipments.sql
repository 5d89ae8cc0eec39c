SELECT COALESCE(l.l_shipdate, o.o_orderdate) AS ts, o.o_orderkey AS number, o.c_mktsegment AS segment,
       l.l_linenumber AS line
FROM orders AS o LEFT JOIN lineitem AS l ON o.o_orderkey = l.l_orderkey
AND l.l_shipdate - o.o_orderdate BETWEEN INTERVAL 0 SECONDS AND INTERVAL 60 DAYS
ORDER BY COALESCE(l.l_shipdate, o.o_orderdate + INTERVAL 60 DAYS), l.l_linenumber IS NULL, o.o_orderdate;
