-- The price of a zone at the time of each ride: the newest that is not later.
CREATE STREAM rides FROM 'rides.csv';
CREATE TABLE prices FROM 'prices.csv' VALID FROM since;

SELECT ride, zone, price FROM rides LEFT JOIN prices USING (zone);
