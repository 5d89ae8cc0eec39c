-- Query 1 of TPC-H over four weeks of shipped lines at a time; files of text have no decimals, so they are made first.
CREATE STREAM lineitem FROM '../input/lineitem.csv' TIME l_shipdate;
CREATE STREAM lines AS
SELECT l_returnflag, l_linestatus, CAST(l_quantity AS DECIMAL(15, 2)) AS quantity,
       CAST(l_extendedprice AS DECIMAL(15, 2)) AS price, CAST(l_discount AS DECIMAL(15, 2)) AS discount,
       CAST(l_tax AS DECIMAL(15, 2)) AS tax
FROM lineitem WHERE l_shipdate <= TIMESTAMP '1995-05-20 00:00:00';

SELECT l_returnflag, l_linestatus, SUM(quantity) AS sum_qty, SUM(price) AS sum_base_price,
       SUM(price * (1 - discount)) AS sum_disc_price, SUM(price * (1 - discount) * (1 + tax)) AS sum_charge,
       ROUND(AVG(quantity), 2) AS avg_qty, ROUND(AVG(price), 2) AS avg_price, ROUND(AVG(discount), 2) AS avg_disc,
       COUNT(*) AS count_order
FROM lines [RANGE 28 DAYS]
GROUP BY l_returnflag, l_linestatus;
