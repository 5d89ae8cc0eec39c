-- Alerts wait fifteen seconds for a login on their host; logins wait two seconds for an alert.
CREATE STREAM alerts FROM 'alerts.csv';
CREATE STREAM logins FROM 'logins.csv';

SELECT a.id AS alert, l.id AS login, a.host, a.ts AS alerted, l.ts AS logged_in
FROM alerts [RANGE 15 SECONDS] AS a JOIN logins [RANGE 2 SECONDS] AS l
ON a.host = l.host;
