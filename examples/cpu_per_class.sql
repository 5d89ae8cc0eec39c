-- What tasks ask of a cluster: the processors of each scheduling class over a minute, every second, and the classes'
-- busiest second of every minute.
--
-- Shows: a window over a window; a row of the inner one is in the minute in which its own minute ends.
-- Run:   tidegate run examples/cpu_per_class.sql --master none

CREATE STREAM tasks FROM 'generator:tasks?rows=20000&rate=50';

CREATE STREAM asked AS
SELECT scheduling_class, SUM(cpu) AS cpu FROM tasks [RANGE 60 SECONDS SLIDE 1 SECOND] GROUP BY scheduling_class;

SELECT scheduling_class, ROUND(MAX(cpu), 3) AS most, ROUND(AVG(cpu), 3) AS mean, COUNT(*) AS seconds
FROM asked [RANGE 1 MINUTE]
GROUP BY scheduling_class;
