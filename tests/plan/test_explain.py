"""Explain: the whole text, for grouped queries, unions, several subqueries and several outputs."""

from __future__ import annotations

import pyarrow as pa

from tests.query.catalog import outputs, sql
from tidegate.plan.explain import explain
from tidegate.plan.lowering.lower import lower
from tidegate.plan.physical import STRATEGIES
from tidegate.query.output import Output

GROUPED = """\
query
  order by fare DESC, limit 10 per window
  └─ filter n > 3
     └─ aggregate [RANGE 15 minutes SLIDE 5 minutes] by route: fare = mean(fare), n = count(*), \
m = quantile(tip, 0.5)
        └─ filter fare > 0 AND tip > 1
           └─ stream rides
subqueries (operator-set: one per stateful operator, with the stateless ones that follow it)
  1 aggregate: aggregate over [RANGE 15 minutes SLIDE 5 minutes] by route
    takes rides
      reads: route, fare, tip and the time dropoff_time
      where: `fare` > 0 AND `tip` > 1
      k0 = `route`
      x0 = `fare`
      x1 = `tip`
      read + filter + panes: Arrow task, map side
    panes: 5 minutes, 3 per window
    pre-aggregated per pane on the map side: mean(fare), count(*)
    exact holistic, values kept per pane: quantile(tip, 0.5)
    merge panes, close windows: one task per instance, shuffle by bucket
    rows: filter, the same task
    rows by window, ORDER BY, key, limit 10 per window: collect
output, of aggregate
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
subqueries (operator-set: one per stateful operator, with the stateless ones that follow it)
  1 stateless: filter, select, order
    takes rides
      reads: route, fare, paid and the time dropoff_time
      where: `paid`
      f = `fare` * 2
      read + filter + project: Arrow task, map side
    takes calls
      reads: route, fare and the time ts
      f = CAST(`fare` AS DOUBLE)
      read + project: Arrow task, map side
    rows by ts, input, source, position: collect
output, of stateless
  ts: timestamp
  route: string
  f: double
gate
  1 rides: time dropoff_time, disorder 0 seconds, idle off, sources: rides.parquet
  2 calls: time ts, disorder 2 seconds, idle 1 minute, sources: a.csv, b.csv
fingerprint FINGERPRINT"""

IN_SPARK = """\
  1 aggregate: aggregate over [RANGE 1 hour] by x
    takes rides
      reads: route, tip and the time dropoff_time
      k0 = REGEXP_EXTRACT(`route`, 'a')
      x0 = `tip`
      prefix: Spark SQL in the JVM (REGEXP_EXTRACT needs Spark, it is not among the functions that \
run without it)
      panes: Arrow task, map side
    panes: 1 hour, 1 per window
    exact holistic, values kept per pane: count(DISTINCT tip)
    merge panes, close windows: one task per instance, shuffle by bucket
    rows: select, the same task
    rows by window, key: collect
"""

SEVERAL = """\
query of output high
  filter n > 3
  └─ aggregate [RANGE 1 minute] by route: n = count(*)
     └─ stream calls
query of output last
  aggregate [ROWS 5 SLIDE 2] by nothing: most = max(n)
  └─ aggregate [RANGE 1 minute] by route: n = count(*)
     └─ stream calls
subqueries (operator-set: one per stateful operator, with the stateless ones that follow it)
  1 aggregate: aggregate over [RANGE 1 minute] by route
    takes calls
      reads: route and the time ts
      k0 = `route`
      read + panes: Arrow task, map side
    panes: 1 minute, 1 per window
    pre-aggregated per pane on the map side: count(*)
    merge panes, close windows: one task per instance, shuffle by bucket
    rows 1 of 2: filter, the same task
    rows 1 of 2 by window, key: collect
    rows 2 of 2 by window, key: collect
  2 last: aggregate over [ROWS 5 SLIDE 2] by nothing
    takes aggregate (rows 2)
      reads: n and the time window_end
      x0 = `n`
      read + project: Arrow task, map side
    keeps tuples, fills windows: one task per instance, shuffle by bucket
    rows by the tuple that fills a window: collect
output high, of aggregate
  window_start: timestamp
  window_end: timestamp
  route: string
  n: bigint
output last, of last
  window_start: timestamp
  window_end: timestamp
  most: bigint
gate
  1 calls: time ts, disorder 2 seconds, idle 1 minute, sources: a.csv, b.csv
fingerprint FINGERPRINT"""


def test_a_grouped_query() -> None:
    node = sql(
        "SELECT route, AVG(fare) AS fare, COUNT(*) AS n, MEDIAN(tip) AS m FROM rides "
        "[RANGE 15 MINUTES SLIDE 5 MINUTES] WHERE fare > 0 AND tip > 1 GROUP BY route "
        "HAVING n > 3 ORDER BY fare DESC LIMIT 10"
    )
    plan = lower(node)
    assert explain([Output(None, node)], plan) == GROUPED.replace(
        "FINGERPRINT", plan.fingerprint[:16]
    )


def test_a_union() -> None:
    node = sql(
        "SELECT route, fare * 2 AS f FROM rides WHERE paid UNION ALL SELECT route, fare FROM calls"
    )
    plan = lower(node)
    assert explain([Output(None, node)], plan) == UNION.replace(
        "FINGERPRINT", plan.fingerprint[:16]
    )


def test_a_prefix_in_spark() -> None:
    node = sql(
        "SELECT regexp_extract(route, 'a', 1) AS x, COUNT(DISTINCT tip) + 1 AS n "
        "FROM rides [RANGE 1 HOUR] GROUP BY x"
    )
    plan = lower(node, lambda texts, schema: [pa.string(), pa.int32()][: len(texts)])
    assert IN_SPARK in explain([Output(None, node)], plan)


def test_several_outputs_and_subqueries() -> None:
    counts = "(SELECT route, COUNT(*) AS n FROM calls [RANGE 1 MINUTE] GROUP BY route)"
    named = outputs(
        f"INSERT INTO high SELECT route, n FROM {counts} WHERE n > 3;"
        f"INSERT INTO last SELECT MAX(n) AS most FROM {counts} [ROWS 5 SLIDE 2]"
    )
    given = [Output(name, node) for name, node in named.items()]
    plan = lower(given)
    assert explain(given, plan) == SEVERAL.replace("FINGERPRINT", plan.fingerprint[:16])


def test_the_strategy_is_said_with_what_it_means() -> None:
    node = sql("SELECT fare FROM calls")
    said = [explain([Output(None, node)], lower(node, strategy=s)) for s in STRATEGIES]
    assert [text.split("subqueries (")[1].split(")")[0] for text in said] == [
        "operator-set: one per stateful operator, with the stateless ones that follow it",
        "query-cloud: as operator-set, all on the same instances",
        "operator-cloud: one per operator",
    ]


def test_keys_and_orders_that_are_not_the_plain_ones() -> None:
    node = sql(
        "SELECT UPPER(route) AS line, COUNT(*) AS n FROM rides [RANGE 1 DAY] GROUP BY line "
        "ORDER BY n DESC NULLS FIRST, line NULLS LAST"
    )
    text = explain([Output(None, node)], lower(node))
    assert "order by n DESC NULLS FIRST, line NULLS LAST\n" in text
    assert "aggregate [RANGE 1 day] by line = UPPER(route): n = count(*)\n" in text
