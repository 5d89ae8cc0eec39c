-- Tuples wait until they are ready, also those that came out of order; south allows no disorder.
CREATE STREAM north FROM 'north.csv' DISORDER 3 SECONDS;
CREATE STREAM south FROM 'south.csv';

SELECT id, km * 1000 AS m FROM north
UNION ALL
SELECT id, miles * 1609 FROM south;
