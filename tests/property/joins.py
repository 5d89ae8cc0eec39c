"""The joins whose output must not depend on how they are run, each with its plain meaning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from tests.oracle.aggregate import sort_key
from tests.oracle.join import Joined, Newest, Row, Within
from tests.oracle.query import PlainStream
from tests.property.queries import Query
from tests.property.strategies import Scenario

Truth = bool | None

ITEMS = "l.d AS l, r.d AS r, l.ts AS l_ts, r.k AS k, l.x AS x, r.i AS i"
"""`d` numbers the tuples, so that the order of pairs can be told."""


def equal(a: Any, b: Any) -> Truth:
    """SQL's equality: NULL is unknown, NaN equals NaN."""
    return None if a is None or b is None else sort_key(a) == sort_key(b)


def below(a: Any, b: Any) -> Truth:
    """SQL's order: NULL is unknown, NaN is the greatest."""
    return None if a is None or b is None else sort_key(a) < sort_key(b)


def near(a: Any, b: Any, distance: float) -> Truth:
    return None if a is None or b is None else abs(a - b) <= distance


def both(*parts: Truth) -> Truth:
    return False if False in parts else None if None in parts else True


def either(*parts: Truth) -> Truth:
    return True if True in parts else None if None in parts else False


def joined(
    left: Within | Newest,
    right: Within | Newest,
    sql: str,
    on: Callable[[Row, Row], Truth],
    where: str = "",
    names: tuple[str, str] = ("s", "r"),
) -> Query:
    text = (
        f"SELECT {ITEMS} FROM {names[0]} AS l {_window(left)} "
        f"JOIN {names[1]} AS r {_window(right)} ON {sql} {where}"
    )
    return Query(text, Joined(left, right, on, _select), names)


def _window(window: Within | Newest) -> str:
    if isinstance(window, Within):
        return f"[RANGE {window.range_us} MICROSECONDS]"
    return f"[ROWS {window.rows}]"


def _select(left: Row, right: Row) -> tuple[Any, ...]:
    return (left["d"], right["d"], left["ts"], right["k"], left["x"], right["i"])


JOINED = {
    "equality": joined(Within(12), Within(12), "l.k = r.k", lambda a, b: equal(a["k"], b["k"])),
    "equality of floats, a long and a short window": joined(
        Within(3000), Within(2), "r.f = l.f", lambda a, b: equal(a["f"], b["f"])
    ),
    "two keys, one moment": joined(
        Within(0),
        Within(5),
        "l.k = r.k AND l.g = r.g",
        lambda a, b: both(equal(a["k"], b["k"]), equal(a["g"], b["g"])),
    ),
    "band": joined(
        Within(20), Within(7), "abs(l.x - r.x) <= 0.5", lambda a, b: near(a["x"], b["x"], 0.5)
    ),
    "two bands": joined(
        Within(40),
        Within(40),
        "l.i BETWEEN r.i - 4 AND r.i + 4 AND l.g BETWEEN r.g - 5 AND r.g + 5",
        lambda a, b: both(near(a["i"], b["i"], 4), near(a["g"], b["g"], 5)),
    ),
    "band and equality": joined(
        Within(1000),
        Within(30),
        "l.g = r.g AND abs(l.i - r.i) <= 10",
        lambda a, b: both(equal(a["g"], b["g"]), near(a["i"], b["i"], 10)),
    ),
    "order": joined(
        Within(9),
        Within(6),
        "l.x < r.x AND l.k >= r.k",
        lambda a, b: both(
            below(a["x"], b["x"]), either(below(b["k"], a["k"]), equal(a["k"], b["k"]))
        ),
    ),
    "any predicate": joined(
        Within(5),
        Within(10),
        "l.k <> r.k OR l.b",
        lambda a, b: either(negated(equal(a["k"], b["k"])), a["b"]),
    ),
    "everything": joined(Within(4), Within(0), "TRUE", lambda a, b: True),
    "where": joined(
        Within(15),
        Within(15),
        "l.g = r.g",
        lambda a, b: both(equal(a["g"], b["g"]), below(a["i"], 90), b["k"] is not None),
        "WHERE l.i < 90 AND r.k IS NOT NULL",
    ),
    "the last tuples": joined(
        Newest(3), Newest(5), "l.k = r.k", lambda a, b: equal(a["k"], b["k"])
    ),
    "the last tuples, band and where": joined(
        Newest(4),
        Newest(1),
        "abs(l.i - r.i) <= 100",
        lambda a, b: both(near(a["i"], b["i"], 100), a["b"]),
        "WHERE l.b",
    ),
    "the last tuples and a range": joined(
        Newest(2), Within(8), "l.k = r.k OR l.b", lambda a, b: either(equal(a["k"], b["k"]), a["b"])
    ),
    "null-safe equality": joined(
        Within(12), Within(30), "l.f <=> r.f", lambda a, b: equal_or_null(a["f"], b["f"])
    ),
    "one of two keys": joined(
        Within(25),
        Within(40),
        "l.k = r.k OR l.g = r.g",
        lambda a, b: either(equal(a["k"], b["k"]), equal(a["g"], b["g"])),
    ),
    "either of two bands, and a key": joined(
        Within(40),
        Within(12),
        "l.g <=> r.g AND (abs(l.x - r.x) <= 0.5 OR l.i BETWEEN r.i - 4 AND r.i + 4)",
        lambda a, b: both(
            equal_or_null(a["g"], b["g"]),
            either(near(a["x"], b["x"], 0.5), near(a["i"], b["i"], 4)),
        ),
    ),
    "one key or another": joined(
        Newest(9),
        Within(40),
        "CASE WHEN l.b THEN l.k = r.k ELSE l.g = r.i END",
        lambda a, b: equal(a["k"], b["k"]) if a["b"] else equal(a["g"], b["i"]),
    ),
    "itself": joined(
        Within(6),
        Within(6),
        "l.k = r.k AND l.i < r.i",
        lambda a, b: both(equal(a["k"], b["k"]), below(a["i"], b["i"])),
        names=("s", "s"),
    ),
    "itself, the last tuples": joined(
        Newest(2),
        Newest(3),
        "abs(l.g - r.g) <= 5",
        lambda a, b: near(a["g"], b["g"], 5),
        names=("s", "s"),
    ),
}


def equal_or_null(a: Any, b: Any) -> bool:
    """SQL's <=>: NULL equals NULL."""
    return a is b if a is None or b is None else equal(a, b) is True


def negated(truth: Truth) -> Truth:
    return None if truth is None else not truth


def numbered(scenario: Scenario) -> Scenario:
    """The same tuples with a number each; a stream that meets itself has the same ones twice."""
    left, right = scenario.streams
    if scenario.query.names[0] == scenario.query.names[1]:
        right = left
    return replace(scenario, streams=(_numbered(left), _numbered(right)))


def _numbered(stream: PlainStream) -> PlainStream:
    sources = [
        [{**row, "d": Decimal(f"{1000 * place + seq}.000")} for seq, row in enumerate(rows)]
        for place, rows in enumerate(stream.sources)
    ]
    return replace(stream, sources=sources)
