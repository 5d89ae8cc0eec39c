-- StreamCloud's aggregate: calls and their mean duration by district, over a minute, every ten seconds.
CREATE STREAM calls FROM '../input/calls.csv' TIME ts;
CREATE STREAM durations AS
SELECT district, unix_seconds(end_time) - unix_seconds(start_time) AS seconds FROM calls;

SELECT district, COUNT(*) AS calls, AVG(seconds) AS seconds
FROM durations [RANGE 60 SECONDS SLIDE 10 SECONDS]
GROUP BY district;
