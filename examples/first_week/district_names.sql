-- How many calls come from each district, by its name?
-- Run: tidegate run examples/first_week/district_names.sql --master none
CREATE STREAM calls FROM 'generator:calls?rows=20000&rate=5&keys=300' TIME ts;
CREATE TABLE districts FROM 'examples/first_week/districts.csv';
CREATE STREAM named AS SELECT d.name FROM calls JOIN districts AS d ON calls.district = d.id;
SELECT name, COUNT(*) AS calls FROM named [RANGE 15 MINUTES] GROUP BY name;
