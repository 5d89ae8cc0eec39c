"""As-of joins: the same rows for every arrival, cut, instances, switch, restart and crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.asof import Nearest, Row
from tests.oracle.query import interpret
from tests.property.course import AT_ONCE, run
from tests.property.joins import numbered
from tests.property.queries import Query
from tests.property.strategies import Scenario, crowded, scenarios
from tests.property.test_determinism import bits, share
from tests.seed import seeds

SEEDS = seeds(max(1, settings.default.max_examples // 50))
ITEMS = "l.d AS l, r.d AS r, l.ts AS l_ts, r.ts AS r_ts, r.k AS k, l.x AS x"


def as_of(
    comparison: str,
    keys: tuple[str, ...] = ("k",),
    tolerance: int | None = None,
    keep: bool = False,
    where: str = "",
    plain: Callable[[Row, Row | None], bool] = lambda left, right: True,
    names: tuple[str, str] = ("s", "r"),
) -> Query:
    far = "" if tolerance is None else f"[RANGE {tolerance} MICROSECONDS]"
    on = " AND ".join(f"l.{key} = r.{key}" for key in keys)
    sql = (
        f"SELECT {ITEMS} FROM {names[0]} AS l ASOF {'LEFT ' if keep else ''}JOIN {names[1]} AS r "
        f"{far} MATCH_CONDITION (l.ts {comparison} r.ts) {f'ON {on}' if on else ''} {where}"
    )
    return Query(sql, Nearest(comparison, keys, tolerance, keep, _select, plain), names)


def _select(left: Row, right: Row | None) -> tuple[Any, ...]:
    partner = right or dict.fromkeys(("d", "ts", "k"))
    return left["d"], partner["d"], left["ts"], partner["ts"], partner["k"], left["x"]


JOINED = {
    f"{comparison} {tolerance} {keep}": as_of(comparison, ("k",), tolerance, keep)
    for comparison, tolerance, keep in product(
        (">=", ">", "<=", "<"), (None, 0, 7, 2000), (False, True)
    )
    if tolerance is not None or comparison in (">=", ">")
} | {
    "floats": as_of(">=", ("f",), keep=True),
    "floats ahead": as_of("<=", ("f",), 40, keep=True),
    "two keys": as_of(">", ("k", "g"), 400),
    "two keys ahead": as_of("<", ("g", "k"), 400, keep=True),
    "no key": as_of(">=", (), 5, keep=True),
    "no key ahead": as_of("<", (), 5),
    "itself": as_of(">", ("k",), keep=True, names=("s", "s")),
    "itself ahead": as_of("<", ("k",), 30, keep=True, names=("s", "s")),
    "where left": as_of(">=", keep=True, where="WHERE l.i < 5", plain=lambda a, b: _under(a["i"])),
    "where left ahead": as_of(
        "<=", ("k",), 12, where="WHERE l.i < 5", plain=lambda a, b: _under(a["i"])
    ),
    "where right": as_of(
        ">=",
        keep=True,
        where="WHERE r.i < 5 OR r.i IS NULL",
        plain=lambda a, b: b is None or b["i"] is None or b["i"] < 5,
    ),
    "where right ahead": as_of(
        "<=", ("k",), 12, where="WHERE r.i < 5", plain=lambda a, b: b is not None and _under(b["i"])
    ),
}


def _under(value: int | None) -> bool:
    return value is not None and value < 5


@pytest.fixture(scope="module", autouse=True)
def small_splits() -> Iterator[None]:
    """Several map tasks read one source, although the sources are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 7)
        yield


def check(scenario: Scenario) -> None:
    """One scenario run at once, run its own way, and interpreted tuple by tuple."""
    answer = interpret(scenario.query.plain, scenario.streams)
    streams = scenario.streams
    plan = scenario.query.plan([len(s.sources) for s in streams], streams[0].disorder)
    for course in (AT_ONCE, scenario.course):
        result = run(plan, streams, course)
        assert bits(result.rows) == bits(answer.rows)


@share(60, least=30)
@given(scenarios(JOINED).map(numbered))
def test_rows_do_not_depend_on_the_run(scenario: Scenario) -> None:
    check(scenario)


@share(20, least=20)
@given(scenarios(JOINED).map(numbered), st.integers(1, 2))
def test_rows_do_not_depend_on_the_run_tuple_by_tuple(scenario: Scenario, batch_rows: int) -> None:
    check(replace(scenario, course=replace(scenario.course, batch_rows=batch_rows)))


@pytest.mark.parametrize("name", JOINED)
def test_rows_of_crowded_streams_do_not_depend_on_the_run(name: str) -> None:
    for seed in SEEDS:
        check(numbered(crowded(JOINED[name], f"{name} {seed}")))
