-- What tasks ask for in a cluster: the processors of each scheduling class over a minute, every second; their mean over
-- an hour, every half of one; and the mean of each job over 45 minutes, here every 15.
CREATE STREAM tasks FROM '../input/tasks.csv' TIME ts;

INSERT INTO total SELECT scheduling_class, SUM(cpu) AS cpu, COUNT(*) AS tasks
FROM tasks [RANGE 60 SECONDS SLIDE 1 SECOND] WHERE ts < TIMESTAMP '2011-05-01 00:01:00' GROUP BY scheduling_class;

INSERT INTO mean SELECT scheduling_class, AVG(cpu) AS cpu
FROM tasks [RANGE 60 MINUTES SLIDE 30 MINUTES] GROUP BY scheduling_class;

INSERT INTO jobs SELECT job_id, AVG(cpu) AS cpu
FROM tasks [RANGE 45 MINUTES SLIDE 15 MINUTES] GROUP BY job_id;
