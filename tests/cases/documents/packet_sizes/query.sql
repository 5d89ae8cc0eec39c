-- The mean and the median size of TCP packets over 45 seconds, every 15.
CREATE STREAM packets FROM '../input/packets.csv' TIME ts;

SELECT AVG(size) AS mean, MEDIAN(size) AS median, COUNT(*) AS packets
FROM packets [RANGE 45 SECONDS SLIDE 15 SECONDS]
WHERE protocol = 'tcp';
