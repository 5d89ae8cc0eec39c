-- The pricing report of TPC-H, query 1, week by week.
--
-- Shows: exact decimals in sums and means, several expressions of one column.
-- Run:   tidegate run examples/tpch_q1.sql --master none
-- Then:  --instances 4 --batch-rows 5000 gives the same rows, to the last digit.

CREATE STREAM lineitem FROM 'generator:lineitem?rows=50000' TIME l_shipdate;

SELECT l_returnflag, l_linestatus,
       SUM(l_quantity) AS sum_qty,
       SUM(l_extendedprice) AS sum_base_price,
       SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
       SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
       AVG(l_quantity) AS avg_qty,
       AVG(l_discount) AS avg_disc,
       COUNT(*) AS count_order
FROM lineitem [RANGE 7 DAYS]
WHERE l_shipdate <= TIMESTAMP '1998-09-02 00:00:00'
GROUP BY l_returnflag, l_linestatus;
