WITH lines AS (
    SELECT l_shipdate AS ts, l_returnflag, l_linestatus, l_quantity::DECIMAL(15, 2) AS quantity,
           l_extendedprice::DECIMAL(15, 2) AS price, l_discount::DECIMAL(15, 2) AS discount, l_tax::DECIMAL(15, 2) AS tax
    FROM read_csv('../input/lineitem.csv') WHERE l_shipdate <= TIMESTAMP '1995-05-20 00:00:00'
), windows AS (
    SELECT make_timestamp(k * 28 * 86400000000) AS window_start, make_timestamp((k + 1) * 28 * 86400000000) AS window_end
    FROM range(320, 340) AS t(k)
)
SELECT window_start, window_end, l_returnflag, l_linestatus, SUM(quantity) AS sum_qty, SUM(price) AS sum_base_price,
       SUM(price * (1 - discount)) AS sum_disc_price, SUM(price * (1 - discount) * (1 + tax)) AS sum_charge,
       ROUND(AVG(quantity), 2)::DECIMAL(15, 2) AS avg_qty, ROUND(AVG(price), 2)::DECIMAL(15, 2) AS avg_price,
       ROUND(AVG(discount), 2)::DECIMAL(15, 2) AS avg_disc, COUNT(*) AS count_order
FROM windows JOIN lines ON ts >= window_start AND ts < window_end
GROUP BY ALL
ORDER BY window_end, l_returnflag, l_linestatus;
