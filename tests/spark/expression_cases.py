"""The rows and the expressions that kernels and Spark are compared on."""

from __future__ import annotations

import pyarrow as pa

from tidegate.schema import TIME

TYPES: dict[str, pa.DataType] = {
    "y": pa.int8(),
    "h": pa.int16(),
    "i": pa.int32(),
    "j": pa.int32(),
    "l": pa.int64(),
    "f": pa.float32(),
    "d": pa.float64(),
    "e": pa.float64(),
    "c": pa.decimal128(10, 2),
    "k": pa.decimal128(20, 8),
    "w": pa.decimal128(38, 10),
    "s": pa.string(),
    "n": pa.string(),
    "z": pa.string(),
    "b": pa.bool_(),
    "p": pa.bool_(),
    "ts": TIME,
    "us": TIME,
    "dt": pa.date32(),
}

Row = tuple[str | None, ...]
ROWS: list[Row] = [
    (
        "1", "2", "3", "2", "4", "1.5", "2.5", "0.5", "1.25", "2.00000001", "3.1415926535",
        "Hello", "5", "2020-01-02", "true", "false",
        "2020-01-02 03:04:05.678", "2020-01-02 03:00:00", "2020-01-31",
    ),
    (
        "-7", "-300", "-70000", "-2", "-5000000000", "-2.25", "-2.5", "1.5", "-1.25", "-0.00000005",
        "-3.5", "  straße ", " -12 ", "2020-1-2 3:4:5.1", "false", "true",
        "1969-12-31 23:59:59.5", "2020-01-02 03:04:05.678", "1969-12-31",
    ),
    (None,) * 19,
    (
        "127", "32767", "2147483647", "1", "9223372036854775807", "3.4e38", "1.7e308", "10",
        "99999999.99", "999999999999.99999999", "9999999999999999999999999999.9999999999",
        "a%c_d\\e", "9223372036854775807", "2020-02-29T23:59:59+01:00", "true", "true",
        "9999-12-31 23:59:59.999999", "0001-01-01 00:00:00", "9999-12-31",
    ),
    (
        "-128", "-32768", "-2147483648", "-1", "-9223372036854775808", "-3.4e38", "-1.7e308", "-10",
        "-99999999.99", "-999999999999.99999999", "-9999999999999999999999999999.9999999999",
        "", "-9223372036854775808", "0001-01-01", "false", "false",
        "0001-01-01 00:00:00.000001", "9999-12-31 00:00:00", "0001-01-01",
    ),
    (
        "0", "0", "0", "0", "0", "nan", "nan", "1", "0.00", "0.00000000", "0.0000000000",
        "ΑΣ😀x", "abc", "not a time", None, "true", "1970-01-01 00:00:00", None, "1970-01-01",
    ),
    (
        "5", "15", "25", "0", "35", "0.1", "0.0", "nan", "2.50", "0.00000050", "0.5000000000",
        "hello world", "1.5", "2021", "true", None, "2024-02-29 12:34:56", "2024-02-29 12:34:56",
        "2024-02-29",
    ),
    (
        None, "100", "1000000", "7", None, "inf", "inf", "inf", "0.05", "0.12345678", None,
        "12", "1e3", "2020-6", None, None, "2023-12-31 00:00:00", "2024-01-01 00:00:00", None,
    ),
    (
        "1", None, "12345", "-3", "123456789", "-inf", "-inf", "-0.0", "2.67", None, "1.0050000000",
        "x\ny", "true", "2020-02-30", "false", "true", None, "2019-12-30 01:02:03.456789",
        "2019-12-30",
    ),
    (
        "2", "10", "20", "3", "100", "2.5", "2.675", "2.675", "10.00", "10.00000000",
        "10.0000000000", "Hello", "10", "2020-12-31 23:59:59.999999Z", "true", "false",
        "2020-12-31 23:59:59.999999", "2020-12-31 23:59:59.999999", "2020-12-31",
    ),
    (
        "3", "9", "-9", "4", "-10", "0.5", "1.005", "2.0", "-0.05", "-2.50000000", "-0.0000000001",
        "  x\t ", "-1.25", "2020-01-02 03:04:05 UTC", "false", None,
        "2000-02-29 00:00:00.001", "2000-03-01 00:00:00", "2000-02-29",
    ),
]  # fmt: skip

EXPRESSIONS: list[str] = """
y + 1
y + y
y - h
h * h
i + j
i * j
i - 1
l + 1
l * 2
l - i
-y
-i
-l
-d
-c
-n
+i
i / j
l / 2
i / 0
NULL / 0
i DIV j
l DIV j
y DIV 2
c DIV 2
k DIV j
i % j
l % j
y % 3
h % -7
-7 % 3
d % e
d % 2
f % 2
c % 3
c % i
k % c
mod(i, 7)
pmod(i, 7)
pmod(l, 1000)
pmod(i, 2147483647)
pmod(j, i)
pmod(y, CAST(127 AS TINYINT))
pmod(y, CAST(-128 AS TINYINT))
pmod(l, 9223372036854775807)
ceil(CAST(j AS DECIMAL(10, 0)))
floor(CAST(j AS DECIMAL(10, 0)))
ceil(CAST(l AS DECIMAL(38, 0)))
floor(CAST(y AS DECIMAL(3, 0)))
timestamp_seconds(IF(abs(d) < 10, d, e))
CAST(timestamp_seconds(d) AS STRING)
CAST(timestamp_seconds(f) AS STRING)
CAST(timestamp_seconds(k) AS STRING)
CAST(timestamp_micros(l) AS STRING)
CAST(CAST(timestamp_micros(l) AS DATE) AS STRING)
CAST(timestamp_micros(l) AS DECIMAL(20, 6))
CAST(timestamp_micros(l) + INTERVAL 1 MONTH AS STRING)
CAST(timestamp_micros(l) - INTERVAL 1 DAY AS STRING)
CAST(date_trunc('year', timestamp_micros(l)) AS STRING)
CAST(date_trunc('week', timestamp_micros(l)) AS STRING)
CAST(ts + INTERVAL 1 DAY AS STRING)
CAST(add_months(dt, 13) AS STRING)
year(timestamp_micros(l))
weekofyear(timestamp_micros(l))
dayofyear(timestamp_micros(l))
dayofweek(timestamp_micros(l))
f + f
f + 1
f * 2
f * d
f / f
f / 3
d + 1
d * e
d / e
d - e
d * 0.5
i + 0.5
i * 1.5
i - 0.25
c + 1
c + i
c * c
c * 2
c * l
c / 3
c / i
c / c
c / k
c / 2.5
k * k
k + c
k - 0.5
w + 1
w + w
w * 2
w * c
w / 3
w - k
0.1 + 0.2
1.5 * 2
c + d
c * f
n + 1
n * 2
n / 2
n - 0.5
n + d
s + s
b + 1
NULL + 1
NULL * c
i & 6
i | j
l ^ i
~i
~y
y & 1
i | j & 6
i ^ j & 3
i | j ^ 5
i & j << 1
i - j || s
s || j * 2
shiftleft(i, 3)
shiftleft(y, 33)
shiftright(l, 2)
i = j
i = 3
i <> j
i != 3
i < l
i <= 3
i > 2.5
i >= 2147483648
y = 5
d = e
d <> e
d < e
d <= e
d > e
d >= e
d = 2.5
d < 1
d > 1
d >= 1.5e0
d <= 0
d = CAST('NaN' AS DOUBLE)
d < CAST('NaN' AS DOUBLE)
CAST('NaN' AS DOUBLE) > d
1 < d
1 >= d
f = d
f < e
f > 1.5
c = 1.25
c > 1
c < i
c <= k
c > d
w > c
w = 3.1415926535
s = 'Hello'
s < 'b'
n = 5
n > 1.5
n < d
n = 5L
s = i
b = p
b = TRUE
b < p
b = 'true'
b = 1
b = n
ts = us
ts < us
ts > '2020-01-01'
ts >= '2020-01-02 03:04:05.678'
ts <= TIMESTAMP '2020-01-02 03:04:05.678'
ts > DATE '2020-01-01'
ts > 'nonsense'
ts > z
dt = '2020-01-31'
dt < ts
dt < DATE '2000-01-01'
dt > z
dt = i
ts = i
i <=> j
d <=> e
s <=> NULL
NULL <=> NULL
c <=> 1.25
i IS DISTINCT FROM j
NULL = NULL
NULL = i
i BETWEEN 0 AND 100
i NOT BETWEEN j AND 25
d BETWEEN 0 AND 3
n BETWEEN 1 AND 6
ts BETWEEN '2020-01-01' AND '2021-01-01'
i IN (3, 25, NULL)
i IN (3, j)
i NOT IN (3, 20)
i IN (1, 2.5)
i IN (3, '25')
d IN (2.5, CAST('NaN' AS DOUBLE), 0)
e IN (0.0)
s IN ('Hello', '')
n IN (5, 6)
c IN (1.25, 10)
ts IN ('2020-01-02 03:04:05.678', NULL)
dt IN (DATE '2020-01-31', '1970-01-01')
b IN (TRUE)
NULL IN (1)
i IS NULL
i IS NOT NULL
NULL IS NULL
isnull(d)
isnotnull(d)
b IS TRUE
b IS NOT TRUE
b IS FALSE
i IS TRUE
isnan(d)
isnan(f)
isnan(i)
nanvl(d, e)
b AND p
b OR p
NOT b
NOT (b AND p) OR b
b AND NULL
b OR NULL
b AND 1
b AND n
NOT i
i > 0 AND d > 0 OR s = ''
j <> 0 AND i / j > 1
j = 0 OR i / j > 1
j <> 0 AND i % j = 0
CASE WHEN j <> 0 THEN i / j END
CASE WHEN j = 0 THEN NULL ELSE i DIV j END
CASE WHEN i > 0 THEN 1 WHEN i < 0 THEN -1 ELSE 0 END
CASE WHEN i > 0 THEN 'pos' WHEN i < 0 THEN 'neg' END
CASE WHEN i > 100 THEN i ELSE 1.5 END
CASE WHEN b THEN i ELSE d END
CASE WHEN b THEN y ELSE c END
CASE WHEN b THEN ts ELSE dt END
CASE WHEN b THEN 1 ELSE '2' END
CASE WHEN b THEN NULL END
CASE WHEN b THEN 1 ELSE TRUE END
CASE i WHEN 3 THEN 'three' WHEN 25 THEN 'many' ELSE s END
CASE d WHEN CAST('NaN' AS DOUBLE) THEN 1 WHEN 0 THEN 2 END
CASE s WHEN 'Hello' THEN l END
CASE WHEN i THEN 1 END
CASE WHEN j <> 0 THEN l DIV j ELSE l + 1 END
IF(b, i, j)
IF(i > 0, s, n)
IF(NULL, 1, 2)
IF(j = 0, 0, i % j)
COALESCE(i, j)
COALESCE(i, l, 0)
COALESCE(i, 1.5)
COALESCE(d, 0)
COALESCE(f, i)
COALESCE(s, 'none')
COALESCE(i, n)
COALESCE(dt, ts)
COALESCE(NULL, c)
COALESCE(NULL, NULL)
COALESCE(j / NULLIF(j, 0), i / j)
COALESCE(i, i / 0)
NVL(y, h)
NULLIF(i, 3)
NULLIF(d, 2.5)
NULLIF(s, '')
NULLIF(i, n)
NVL2(i, s, n)
NVL2(i, 1, 2.5)
GREATEST(i, j)
GREATEST(i, d)
GREATEST(d, e)
LEAST(d, e)
LEAST(i, j, 5)
LEAST(s, 'b')
GREATEST(c, 1)
GREATEST(c, k, w)
GREATEST(dt, ts)
LEAST(b, p)
LEAST(y, 1.5)
GREATEST(1, i, l)
GREATEST(s, i)
GREATEST(NULL, i)
decode(i, 3, 'a', 25, 'b', 'c')
ABS(i)
ABS(y)
ABS(d)
ABS(c)
ABS(n)
ABS(l)
SIGN(i)
SIGN(d)
SIGN(e)
SIGN(c)
SQRT(i)
SQRT(d)
SQRT(c)
SQRT(n)
SQRT(b)
CBRT(d)
EXP(e)
EXP(d)
LN(d)
LN(i)
LOG(d)
LOG(2, d)
LOG(e, 8)
LOG10(e)
LOG10(i)
LOG2(e)
LOG2(i)
LOG1P(e)
EXPM1(e)
POW(d, 2)
POWER(e, d)
POW(i, 0.5)
POW(1, d)
POW(-1, d)
FLOOR(d)
FLOOR(f)
FLOOR(i)
FLOOR(c)
FLOOR(w)
FLOOR(e)
CEIL(d)
CEIL(c)
CEIL(k)
CEIL(y)
CEIL(-0.5)
ROUND(d)
ROUND(d, 2)
ROUND(e, 2)
ROUND(e, 1)
ROUND(d, -2)
ROUND(f, 1)
ROUND(f)
ROUND(c)
ROUND(c, 1)
ROUND(c, 5)
ROUND(c, -1)
ROUND(k, 4)
ROUND(w, 2)
ROUND(w)
ROUND(i)
ROUND(i, -2)
ROUND(y, -1)
ROUND(l, -3)
ROUND(l, -18)
ROUND(n, 1)
ROUND(d, NULL)
ROUND(d * 1000, 1)
ROUND(d / 3, 6)
RINT(d)
SIN(e)
COS(e)
TAN(e)
COT(e)
ASIN(e)
ACOS(e)
ATAN(d)
ATAN2(d, e)
ATAN2(i, j)
SINH(e)
COSH(e)
TANH(e)
RADIANS(e)
DEGREES(e)
HYPOT(e, i)
PI()
E()
UPPER(s)
LOWER(s)
UPPER(i)
LENGTH(s)
LENGTH(i)
CHAR_LENGTH(n)
TRIM(s)
LTRIM(s)
RTRIM(s)
TRIM(BOTH 'Hx' FROM s)
TRIM(LEADING 'H' FROM s)
LTRIM('H', s)
BTRIM(s, ' ')
SUBSTRING(s, 2)
SUBSTRING(s, 2, 3)
SUBSTRING(s, 0, 2)
SUBSTRING(s, -3, 2)
SUBSTRING(s, -3)
SUBSTRING(s, -10, 7)
SUBSTRING(s, -7, 5)
SUBSTRING(s, 2, -1)
SUBSTRING(s, 100)
SUBSTRING(s FROM 1 FOR 2)
SUBSTRING(s, NULL, 2)
SUBSTR(i, 1, 2)
LEFT(s, 2)
LEFT(s, -1)
RIGHT(s, 2)
RIGHT(s, 100)
RIGHT(s, 0)
CONCAT(s, '-', n)
CONCAT(s, i)
CONCAT(i, c, k, w)
CONCAT(s, b, ts, dt)
CONCAT(s, NULL)
s || n
s || i || 'x'
REPLACE(s, 'l', 'LL')
REPLACE(s, '', 'x')
STARTSWITH(s, 'He')
ENDSWITH(s, 'o')
CONTAINS(s, 'l')
CONTAINS(s, '')
CONTAINS(i, '0')
STARTSWITH(s, NULL)
s LIKE 'He%'
s LIKE '%o'
s LIKE '%l%'
s LIKE 'Hello'
s LIKE 'H_llo'
s LIKE '%'
s LIKE ''
s LIKE '_'
s LIKE 'x_y'
s LIKE '%h%w%'
s LIKE 'a\\\\%c%'
s LIKE '%!_%' ESCAPE '!'
s LIKE 'a!bc' ESCAPE '!'
s LIKE '%\\\\\\\\%'
s NOT LIKE '%l%'
s LIKE NULL
s LIKE '%😀_'
s ILIKE 'HE%'
i LIKE '2%'
CAST(y AS INT)
CAST(i AS TINYINT)
CAST(i AS SMALLINT)
CAST(l AS INT)
CAST(i AS BIGINT)
CAST(i AS FLOAT)
CAST(l AS FLOAT)
CAST(l AS DOUBLE)
CAST(i AS DECIMAL(10, 2))
CAST(l AS DECIMAL(20, 1))
CAST(l AS DECIMAL(5, 0))
CAST(i AS BOOLEAN)
CAST(i AS STRING)
CAST(l AS STRING)
CAST(i AS TIMESTAMP)
CAST(l AS TIMESTAMP)
CAST(i AS DATE)
CAST(d AS TINYINT)
CAST(d AS INT)
CAST(d AS BIGINT)
CAST(e AS INT)
CAST(f AS INT)
CAST(f AS BIGINT)
CAST(d AS FLOAT)
CAST(f AS DOUBLE)
CAST(d AS DECIMAL(10, 2))
CAST(e AS DECIMAL(10, 2))
CAST(e AS DECIMAL(3, 3))
CAST(f AS DECIMAL(20, 10))
CAST(d AS DECIMAL(38, 18))
CAST(d AS BOOLEAN)
CAST(e AS TIMESTAMP)
CAST(d AS TIMESTAMP)
CAST(c AS INT)
CAST(c AS TINYINT)
CAST(w AS BIGINT)
CAST(c AS DOUBLE)
CAST(k AS DOUBLE)
CAST(w AS DOUBLE)
CAST(w AS FLOAT)
CAST(c AS DECIMAL(5, 1))
CAST(k AS DECIMAL(10, 4))
CAST(w AS DECIMAL(38, 0))
CAST(c AS DECIMAL(38, 30))
CAST(w AS DECIMAL(38, 20))
CAST(c AS BOOLEAN)
CAST(c AS STRING)
CAST(k AS STRING)
CAST(w AS STRING)
CAST(c AS TIMESTAMP)
CAST(b AS INT)
CAST(b AS DOUBLE)
CAST(b AS DECIMAL(3, 1))
CAST(b AS STRING)
CAST(b AS TIMESTAMP)
CAST(n AS INT)
CAST(n AS BIGINT)
CAST(n AS TINYINT)
CAST(n AS DOUBLE)
CAST(n AS FLOAT)
CAST(n AS DECIMAL(10, 1))
CAST(n AS DECIMAL(20, 0))
CAST(n AS BOOLEAN)
CAST(z AS TIMESTAMP)
CAST(z AS DATE)
TRY_CAST(n AS INT)
TRY_CAST(n AS DOUBLE)
TRY_CAST(n AS DECIMAL(4, 1))
TRY_CAST(n AS BOOLEAN)
TRY_CAST(z AS DATE)
TRY_CAST(i AS TINYINT)
TRY_CAST(d AS INT)
TRY_CAST(d AS DECIMAL(10, 2))
CAST(ts AS DATE)
CAST(dt AS TIMESTAMP)
CAST(ts AS BIGINT)
CAST(ts AS INT)
CAST(ts AS DOUBLE)
CAST(us AS DECIMAL(20, 6))
CAST(ts AS STRING)
CAST(dt AS STRING)
CAST(ts AS BOOLEAN)
CAST(dt AS INT)
INT(d)
DOUBLE(n)
BIGINT(c)
STRING(i)
YEAR(ts)
YEAR(dt)
YEAR('2020-05-06')
MONTH(ts)
DAY(ts)
DAYOFMONTH(dt)
DAYOFWEEK(dt)
WEEKDAY(dt)
DAYOFYEAR(ts)
WEEKOFYEAR(dt)
QUARTER(ts)
HOUR(ts)
MINUTE(ts)
SECOND(ts)
HOUR(dt)
YEAR(i)
EXTRACT(YEAR FROM ts)
EXTRACT(SECOND FROM us)
EXTRACT(DOW FROM dt)
EXTRACT(WEEK FROM ts)
DATE_TRUNC('MICROSECOND', ts)
DATE_TRUNC('millisecond', us)
DATE_TRUNC('SECOND', ts)
DATE_TRUNC('minute', ts)
DATE_TRUNC('hour', ts)
DATE_TRUNC('day', us)
DATE_TRUNC('week', us)
DATE_TRUNC('month', ts)
DATE_TRUNC('quarter', ts)
DATE_TRUNC('year', us)
DATE_TRUNC('day', dt)
TRUNC(dt, 'month')
TRUNC(ts, 'week')
ts + INTERVAL 5 MINUTES
ts - INTERVAL '1' DAY
ts + INTERVAL '1 day 2 hours'
ts + INTERVAL 1 MONTH
ts - INTERVAL 1 YEAR
us + INTERVAL '1-2' YEAR TO MONTH
us - INTERVAL '1:30' MINUTE TO SECOND
INTERVAL 1 HOUR + ts
dt + INTERVAL 1 DAY
dt + INTERVAL 1 HOUR
dt - INTERVAL 1 MONTH
dt + 1
dt - 1
dt + i
1 + dt
DATE_ADD(dt, 5)
DATE_SUB(ts, 5)
DATEDIFF(dt, ts)
ADD_MONTHS(dt, 1)
ts - us > INTERVAL 5 MINUTES
ts - us = INTERVAL '0' DAY
ts + (us - ts)
dt - dt = INTERVAL '0' DAY
i + INTERVAL 1 DAY
UNIX_MICROS(ts)
UNIX_MILLIS(us)
UNIX_SECONDS(ts)
TIMESTAMP_MICROS(i)
TIMESTAMP_MILLIS(i)
TIMESTAMP_SECONDS(i)
TO_DATE(ts)
TO_TIMESTAMP(z)
ts + NULL
c + NULL
c + (1 + 1)
-(1) + 0.5
(-1) + 0.5
ABS(NULL)
-NULL
NULL % 2
UPPER(NULL)
NANVL(f, f)
CAST(d * 1e10 AS TIMESTAMP)
i + (l + 1)
d / CAST(n AS DOUBLE)
CAST(n AS DOUBLE) / d
TIMESTAMP '2020-01-02T03:04:05Z'
DATE '2020-01-02'
TIMESTAMP '2020-01-02 03:04:05.123456' + INTERVAL 1 DAY
1
2147483648
-2147483648
99999999999999999999
1.50
0.05
1.5e3
1.5D
5L
5Y
TRUE
NULL
'text'
i
ts
missing
""".strip().split("\n")

SPARK_ONLY = [
    "CAST(d AS STRING)",
    "CONCAT(s, d)",
    "s RLIKE 'a+'",
    "SUBSTRING(s, i, 2)",
    "s LIKE n",
    "CONTAINS(s, n)",
    "sha2(s, 256)",
    "FLOOR(d, 1)",
    "REVERSE(s)",
    "w * w * w",
    "ARRAY(i, j)",
    "'2020-01-01' + INTERVAL 1 DAY",
    "CAST(ts AS TIMESTAMP_NTZ)",
]
