"""DISTINCT ON ... KEEP: the same rows for any arrival, cut, instances, switch and crash."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given

from tests.oracle.dedup import Deduplicated
from tests.oracle.query import PlainStream
from tests.property.course import Append, Course, Step
from tests.property.queries import Query
from tests.property.strategies import COLUMNS, Scenario, crowded, scenarios
from tests.property.test_determinism import SEEDS, check, share

ROWS = {
    "one column": Query(
        "SELECT DISTINCT ON (k) k, i, x FROM s KEEP FIRST WITHIN 5 MICROSECONDS",
        Deduplicated(("k",), 5, lambda r: (r["k"], r["i"], r["x"])),
    ),
    "two columns, one of them not selected": Query(
        "SELECT DISTINCT ON (f, b) b, i + 1 AS j FROM s WHERE i IS NOT NULL "
        "KEEP FIRST WITHIN '2 microseconds'",
        Deduplicated(("f", "b"), 2, lambda r: (r["b"], r["i"] + 1), lambda r: r["i"] is not None),
    ),
    "longer than all of it": Query(
        "SELECT DISTINCT ON (d, day) g FROM s KEEP FIRST WITHIN 1 HOUR",
        Deduplicated(("d", "day"), 3_600_000_000, lambda r: (r["g"],)),
    ),
    "the last of each key": Query(
        "SELECT DISTINCT ON (k) k, i, x, ts FROM s KEEP LAST WITHIN 5 MICROSECONDS",
        Deduplicated(("k",), 5, lambda r: (r["k"], r["i"], r["x"]), last=True),
    ),
    "the last of two columns, one of them not selected": Query(
        "SELECT DISTINCT ON (f, b) i + 1 AS j FROM s WHERE i IS NOT NULL "
        "KEEP LAST WITHIN '17 microseconds'",
        Deduplicated(
            ("f", "b"), 17, lambda r: (r["i"] + 1,), lambda r: r["i"] is not None, last=True
        ),
    ),
    "a union of two streams": Query(
        "SELECT DISTINCT ON (g) g, k FROM (SELECT g, k FROM s UNION ALL SELECT g, k FROM r) "
        "KEEP FIRST WITHIN 17 MICROSECONDS",
        Deduplicated(("g",), 17, lambda r: (r["g"], r["k"])),
        ("s", "r"),
    ),
}


@pytest.fixture(scope="module", autouse=True)
def small_splits() -> Iterator[None]:
    """Several map tasks read one source, although the sources are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 7)
        yield


@share(30, least=20)
@given(scenarios(ROWS))
def test_distinct_rows_do_not_depend_on_the_run(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.parametrize("name", ROWS)
def test_distinct_rows_of_crowded_streams_do_not_depend_on_the_run(name: str) -> None:
    for seed in SEEDS:
        check(crowded(ROWS[name], f"{name} {seed}"))


def test_a_tuple_at_the_very_end_of_its_time_is_still_the_last() -> None:
    """The frontier stands at first + within when a batch ends, and such a tuple comes after."""
    rows = [dict(zip(COLUMNS, (ts, k, *[None] * 7), strict=True)) for ts, k in TIMED]
    course = Course(1_000, (Append(0, 2), Step(), Append(0, 1), Step()))
    check(Scenario(ROWS["the last of each key"], (PlainStream("s", [rows]),), course))


TIMED = ((0, "a"), (5, "b"), (5, "a"), (20, "b"))
