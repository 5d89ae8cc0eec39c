"""Explain: the whole text, for a grouped query, a union and a prefix that runs in Spark."""

from __future__ import annotations

import pyarrow as pa

from tests.query.catalog import sql
from tidegate.plan.explain import explain
from tidegate.plan.lower import lower

GROUPED = """\
query
  order by fare DESC, limit 10 per window
  └─ filter n > 3
     └─ aggregate [RANGE 15 minutes SLIDE 5 minutes] by route: fare = mean(fare), n = count(*), \
m = quantile(tip, 0.5)
        └─ filter fare > 0 AND tip > 1
           └─ stream rides
subqueries (operator-set: one per stateful operator, one per stateless prefix)
  1 prefix of rides
    reads: route, fare, tip and the time dropoff_time
    where: `fare` > 0 AND `tip` > 1
    k0 = `route`
    x0 = `fare`
    x1 = `tip`
    read + filter + panes: Arrow task, map side
  2 aggregate over [RANGE 15 minutes SLIDE 5 minutes]
    panes: 5 minutes, 3 per window
    pre-aggregated per pane on the map side: mean(fare), count(*)
    exact holistic, values kept per pane: quantile(tip, 0.5)
    merge panes, close windows: one task per instance, shuffle by bucket
    having: the same task
    order + limit: collect
output
  window_start: timestamp
  window_end: timestamp
  route: string
  fare: double
  n: bigint
  m: double
gate
  1 rides: time dropoff_time, disorder 0 seconds, idle off, sources: rides.parquet
fingerprint FINGERPRINT"""

UNION = """\
query
  union all
  ├─ select route, f = fare * 2
  │  └─ filter paid
  │     └─ stream rides
  └─ select route, fare
     └─ stream calls
subqueries (operator-set: one per stateful operator, one per stateless prefix)
  1 prefix of rides
    reads: route, fare, paid and the time dropoff_time
    where: `paid`
    route = `route`
    f = `fare` * 2
    read + filter + project: Arrow task, map side
    order by ts: collect
  2 prefix of calls
    reads: route, fare and the time ts
    route = `route`
    f = CAST(`fare` AS DOUBLE)
    read + project: Arrow task, map side
    order by ts: collect
output
  ts: timestamp
  route: string
  f: double
gate
  1 rides: time dropoff_time, disorder 0 seconds, idle off, sources: rides.parquet
  2 calls: time ts, disorder 2 seconds, idle 1 minute, sources: a.csv, b.csv
fingerprint FINGERPRINT"""

IN_SPARK = """\
  1 prefix of rides
    reads: route, tip and the time dropoff_time
    k0 = REGEXP_EXTRACT(`route`, 'a')
    x0 = `tip`
    prefix: Spark SQL in the JVM (REGEXP_EXTRACT needs Spark, it is not among the functions that \
run without it)
    panes: Arrow task, map side
  2 aggregate over [RANGE 1 hour]
    panes: 1 hour, 1 per window
    exact holistic, values kept per pane: count(DISTINCT tip)
    merge panes, close windows: one task per instance, shuffle by bucket
    select: the same task
    order: collect
"""


def test_a_grouped_query() -> None:
    node = sql(
        "SELECT route, AVG(fare) AS fare, COUNT(*) AS n, MEDIAN(tip) AS m FROM rides "
        "[RANGE 15 MINUTES SLIDE 5 MINUTES] WHERE fare > 0 AND tip > 1 GROUP BY route "
        "HAVING n > 3 ORDER BY fare DESC LIMIT 10"
    )
    plan = lower(node)
    assert explain(node, plan) == GROUPED.replace("FINGERPRINT", plan.fingerprint[:16])


def test_a_union() -> None:
    node = sql(
        "SELECT route, fare * 2 AS f FROM rides WHERE paid UNION ALL SELECT route, fare FROM calls"
    )
    plan = lower(node)
    assert explain(node, plan) == UNION.replace("FINGERPRINT", plan.fingerprint[:16])


def test_a_prefix_in_spark() -> None:
    node = sql(
        "SELECT regexp_extract(route, 'a', 1) AS x, COUNT(DISTINCT tip) + 1 AS n "
        "FROM rides [RANGE 1 HOUR] GROUP BY x"
    )
    plan = lower(node, lambda texts, schema: [pa.string(), pa.int32()][: len(texts)])
    assert IN_SPARK in explain(node, plan)


def test_keys_and_orders_that_are_not_the_plain_ones() -> None:
    node = sql(
        "SELECT UPPER(route) AS line, COUNT(*) AS n FROM rides [RANGE 1 DAY] GROUP BY line "
        "ORDER BY n DESC NULLS FIRST, line NULLS LAST"
    )
    text = explain(node, lower(node))
    assert "order by n DESC NULLS FIRST, line NULLS LAST\n" in text
    assert "aggregate [RANGE 1 day] by line = UPPER(route): n = count(*)\n" in text
