-- Customers who call long: StreamCloud's query of its elasticity experiments, a map, an aggregate and a filter.
CREATE STREAM calls FROM '../input/calls.csv' TIME ts;
CREATE STREAM durations AS
SELECT src, unix_seconds(end_time) - unix_seconds(start_time) AS seconds FROM calls;
CREATE STREAM hourly AS
SELECT src, AVG(seconds) AS seconds, COUNT(*) AS calls FROM durations [RANGE 1 HOUR SLIDE 1 MINUTE] GROUP BY src;

SELECT src, seconds, calls FROM hourly WHERE seconds > 130;
