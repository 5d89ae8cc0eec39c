"""Functions OVER: the same rows for any arrival, cut, instances, switch and crash."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given

from tests.oracle.over import PlainFrame, PlainLag, PlainLead, PlainNth, PlainOver, PlainRank
from tests.property.queries import CALLS, SCHEMA, Query
from tests.property.strategies import Scenario, crowded, scenarios
from tests.property.test_determinism import SEEDS, check, share
from tidegate.operate.aggregate.function import Function


def function(call: str) -> Function:
    kind, *columns = CALLS[call]
    names = tuple(str(c) for c in columns)
    return Function("f", str(kind), names, tuple(SCHEMA.field(c).type for c in names))


BY_K = "(PARTITION BY k ORDER BY ts"
ANY = function("COUNT(*)")

ROWS = {
    "running": Query(
        f"SELECT i, SUM(x) OVER {BY_K}), COUNT(*) OVER {BY_K} ROWS UNBOUNDED PRECEDING), "
        f"MIN(x) OVER {BY_K}), FIRST_VALUE(i) OVER {BY_K}), LAST_VALUE(i) OVER {BY_K}), "
        f"STDDEV(i) OVER {BY_K}), ROW_NUMBER() OVER {BY_K}) FROM s",
        PlainOver(
            ("k",),
            (
                PlainFrame(function("SUM(x)"), peers=True),
                PlainFrame(function("COUNT(*)")),
                PlainFrame(function("MIN(x)"), peers=True),
                PlainFrame(function("FIRST(i)"), peers=True),
                PlainFrame(Function("f", "last", ("i",), (SCHEMA.field("i").type,)), peers=True),
                PlainFrame(function("STDDEV(i)"), peers=True),
                PlainFrame(function("COUNT(*)")),
            ),
            lambda r: (r["i"],),
        ),
    ),
    "moving by rows": Query(
        f"SELECT AVG(x) OVER {BY_K} ROWS 3 PRECEDING), MAX(k) OVER {BY_K} ROWS BETWEEN 1 PRECEDING "
        f"AND CURRENT ROW), SUM(i) OVER {BY_K} ROWS CURRENT ROW), LAG(x) OVER {BY_K}), "
        f"LAG(i, 2, 7) OVER {BY_K}), LAG(k, 0) OVER {BY_K}) FROM s WHERE i IS NOT NULL",
        PlainOver(
            ("k",),
            (
                PlainFrame(function("AVG(x)"), rows=3),
                PlainFrame(function("MAX(k)"), rows=1),
                PlainFrame(function("SUM(i)"), rows=0),
                PlainLag("x"),
                PlainLag("i", 2, 7),
                PlainLag("k", 0),
            ),
            where=lambda r: r["i"] is not None,
        ),
    ),
    "moving by time": Query(
        "SELECT SUM(x) OVER (PARTITION BY g, b ORDER BY ts RANGE 4 MICROSECONDS PRECEDING), "
        "COUNT(x) OVER (PARTITION BY g, b ORDER BY ts RANGE BETWEEN INTERVAL '1' MICROSECOND "
        "PRECEDING AND CURRENT ROW), MIN(x) OVER (PARTITION BY g, b ORDER BY ts RANGE '17 us' "
        "PRECEDING), SUM(i) OVER (PARTITION BY g, b ORDER BY ts RANGE CURRENT ROW) FROM s",
        PlainOver(
            ("g", "b"),
            (
                PlainFrame(function("SUM(x)"), range_us=4, peers=True),
                PlainFrame(function("COUNT(x)"), range_us=1, peers=True),
                PlainFrame(function("MIN(x)"), range_us=17, peers=True),
                PlainFrame(function("SUM(i)"), range_us=0, peers=True),
            ),
        ),
    ),
    "one key, all kinds of frames": Query(
        "SELECT COUNT(*) OVER (ORDER BY ts), SUM(x) OVER (ORDER BY ts ROWS 5 PRECEDING), "
        "SUM(x) OVER (ORDER BY ts RANGE 9 MICROSECONDS PRECEDING), LAG(f, 3) OVER (ORDER BY ts) "
        "FROM (SELECT x, f FROM s UNION ALL SELECT x, f FROM r)",
        PlainOver(
            (),
            (
                PlainFrame(function("COUNT(*)"), peers=True),
                PlainFrame(function("SUM(x)"), rows=5),
                PlainFrame(function("SUM(x)"), range_us=9, peers=True),
                PlainLag("f", 3),
            ),
        ),
        ("s", "r"),
    ),
    "changes": Query(
        "SELECT k, i, LAG(i) OVER (PARTITION BY f ORDER BY ts) AS before FROM s "
        "QUALIFY i <> before",
        PlainOver(
            ("f",),
            (PlainLag("i"),),
            lambda r: (r["k"], r["i"]),
            qualify=lambda c: None not in (c[2], c[3]) and c[2] != c[3],
        ),
    ),
    "ranks": Query(
        f"SELECT i, RANK() OVER w, LAG(i) OVER w, DENSE_RANK() OVER (w), SUM(x) OVER (w ROWS 2 "
        f"PRECEDING) FROM s WINDOW w AS {BY_K})",
        PlainOver(
            ("k",),
            (
                PlainRank(),
                PlainLag("i"),
                PlainRank(dense=True),
                PlainFrame(function("SUM(x)"), rows=2),
            ),
            lambda r: (r["i"],),
        ),
    ),
    "the next": Query(
        f"SELECT i, LEAD(x) OVER {BY_K}) FROM s WHERE i IS NOT NULL",
        PlainOver(("k",), (PlainLead("x"),), lambda r: (r["i"],), lambda r: r["i"] is not None),
    ),
    "back and forward": Query(
        f"SELECT k, f, b, d, LAG(i) OVER {BY_K}), LEAD(i, 3, 7) OVER {BY_K}), "
        f"SUM(x) OVER {BY_K} ROWS 2 PRECEDING), LEAD(k) OVER {BY_K}) FROM s",
        PlainOver(
            ("k",),
            (
                PlainLag("i"),
                PlainLead("i", 3, 7),
                PlainFrame(function("SUM(x)"), rows=2),
                PlainLead("k"),
            ),
            lambda r: (r["k"], r["f"], r["b"], r["d"]),
        ),
    ),
    "changes to come": Query(
        "SELECT i, LEAD(i) OVER (PARTITION BY f, g ORDER BY ts) AS after "
        "FROM (SELECT i, f, g FROM s UNION ALL SELECT i, f, g FROM r) QUALIFY i <> after",
        PlainOver(
            ("f", "g"),
            (PlainLead("i"),),
            lambda r: (r["i"],),
            qualify=lambda c: None not in (c[1], c[2]) and c[1] != c[2],
        ),
        ("s", "r"),
    ),
    "no NULL": Query(
        f"SELECT x, LAG(x) IGNORE NULLS OVER {BY_K}), LAG(i, 3, 7 IGNORE NULLS) OVER {BY_K}), "
        f"NTH_VALUE(x, 2) IGNORE NULLS OVER {BY_K}), NTH_VALUE(x, 2) OVER {BY_K} ROWS UNBOUNDED "
        f"PRECEDING), NTH_VALUE(k, 3) OVER {BY_K} ROWS 3 PRECEDING), NTH_VALUE(x, 1) IGNORE NULLS "
        f"OVER {BY_K} RANGE 9 MICROSECONDS PRECEDING), FIRST_VALUE(x) IGNORE NULLS OVER {BY_K}) "
        "FROM s",
        PlainOver(
            ("k",),
            (
                PlainLag("x", skips_null=True),
                PlainLag("i", 3, 7, skips_null=True),
                PlainNth("x", 2, PlainFrame(ANY, peers=True), skips_null=True),
                PlainNth("x", 2, PlainFrame(ANY)),
                PlainNth("k", 3, PlainFrame(ANY, rows=3)),
                PlainNth("x", 1, PlainFrame(ANY, range_us=9, peers=True), skips_null=True),
                PlainNth("x", 1, PlainFrame(ANY, peers=True), skips_null=True),
            ),
            lambda r: (r["x"],),
        ),
    ),
    "the next that is known": Query(
        f"SELECT k, LEAD(x, 2, 0.5) IGNORE NULLS OVER {BY_K}), LEAD(i IGNORE NULLS) OVER {BY_K}), "
        f"LEAD(x) OVER {BY_K}) FROM s",
        PlainOver(
            ("k",),
            (
                PlainLead("x", 2, 0.5, skips_null=True),
                PlainLead("i", skips_null=True),
                PlainLead("x"),
            ),
            lambda r: (r["k"],),
        ),
    ),
    "one key and far": Query(
        "SELECT LEAD(g, 40) OVER (ORDER BY ts), LEAD(x, 2) OVER (ORDER BY ts) FROM s",
        PlainOver((), (PlainLead("g", 40), PlainLead("x", 2))),
    ),
}


@pytest.fixture(scope="module", autouse=True)
def small_splits() -> Iterator[None]:
    """Several map tasks read one source, although the sources are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 7)
        yield


@share(30, least=30)
@given(scenarios(ROWS))
def test_columns_over_keys_do_not_depend_on_the_run(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.parametrize("name", ROWS)
def test_columns_over_keys_of_crowded_streams_do_not_depend_on_the_run(name: str) -> None:
    for seed in SEEDS:
        check(crowded(ROWS[name], f"{name} {seed}"))
