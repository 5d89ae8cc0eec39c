"""Random predicates of joins with their plain meaning, from comparisons and connectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from hypothesis import strategies as st

from tests.oracle.join import Newest, Row, Within
from tests.property.joins import Truth, below, both, either, equal, joined, near, negated
from tests.property.queries import Query

Meaning = Callable[[Row, Row], Truth]


@dataclass(frozen=True)
class Predicate:
    """A condition in SQL and what it says of a left and a right row."""

    sql: str
    on: Meaning


def same(name: str, left: Row, right: Row) -> Truth:
    return equal(left[name], right[name])


def safe(name: str, left: Row, right: Row) -> Truth:
    if left[name] is None or right[name] is None:
        return left[name] is None and right[name] is None
    return equal(left[name], right[name])


def more(by: int, left: Row, right: Row) -> Truth:
    return equal(left["i"], None if right["i"] is None else right["i"] + by)


COMPARISONS = [
    Predicate("l.k = r.k", partial(same, "k")),
    Predicate("r.g = l.g", partial(same, "g")),
    Predicate("l.f = r.f", partial(same, "f")),
    Predicate("l.f <=> r.f", partial(safe, "f")),
    Predicate("l.k IS NOT DISTINCT FROM r.k", partial(safe, "k")),
    Predicate("l.k <> r.k", lambda a, b: negated(same("k", a, b))),
    Predicate("l.i = r.i + 1", partial(more, 1)),
    Predicate("l.i IN (r.i, r.i + 1, r.i)", lambda a, b: either(more(0, a, b), more(1, a, b))),
    Predicate("ABS(l.x - r.x) <= 0.5", lambda a, b: near(a["x"], b["x"], 0.5)),
    Predicate("l.i BETWEEN r.i - 4 AND r.i + 4", lambda a, b: near(a["i"], b["i"], 4)),
    Predicate("l.x < r.x", lambda a, b: below(a["x"], b["x"])),
]
OTHERS = [
    Predicate("l.b", lambda a, b: a["b"]),
    Predicate("r.b", lambda a, b: b["b"]),
    Predicate("r.k IS NULL", lambda a, b: b["k"] is None),
    Predicate("TRUE", lambda a, b: True),
    Predicate("FALSE", lambda a, b: False),
    Predicate("CAST(NULL AS BOOLEAN)", lambda a, b: None),
]


def _and(one: Predicate, two: Predicate) -> Predicate:
    return Predicate(f"({one.sql} AND {two.sql})", lambda a, b: both(one.on(a, b), two.on(a, b)))


def _or(one: Predicate, two: Predicate) -> Predicate:
    return Predicate(f"({one.sql} OR {two.sql})", lambda a, b: either(one.on(a, b), two.on(a, b)))


def _not(one: Predicate) -> Predicate:
    return Predicate(f"(NOT {one.sql})", lambda a, b: negated(one.on(a, b)))


def _is_true(one: Predicate) -> Predicate:
    return Predicate(f"(({one.sql}) IS TRUE)", lambda a, b: one.on(a, b) is True)


def _case(when: Predicate, then: Predicate, otherwise: Predicate) -> Predicate:
    return Predicate(
        f"(CASE WHEN {when.sql} THEN {then.sql} ELSE {otherwise.sql} END)",
        lambda a, b: then.on(a, b) if when.on(a, b) is True else otherwise.on(a, b),
    )


def _coalesce(one: Predicate, two: Predicate) -> Predicate:
    def on(a: Row, b: Row) -> Truth:
        truth = one.on(a, b)
        return two.on(a, b) if truth is None else truth

    return Predicate(f"COALESCE({one.sql}, {two.sql})", on)


def _larger(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    return st.one_of(
        st.builds(_or, inner, inner),
        st.builds(_or, inner, inner),
        st.builds(_and, inner, inner),
        st.builds(_case, inner, inner, inner),
        st.builds(_coalesce, inner, inner),
        st.builds(_not, inner),
        st.builds(_is_true, inner),
    )


SINGLE = st.sampled_from(COMPARISONS + COMPARISONS + OTHERS)
PREDICATES = st.recursive(SINGLE, _larger, max_leaves=6)
WINDOWS = st.sampled_from([Within(40), Within(6), Within(3000), Newest(3), Newest(9)])


@st.composite
def queries(draw: st.DrawFn) -> dict[str, Query]:
    """One join on a random predicate, of two streams or of one with itself."""
    predicate = draw(PREDICATES)
    names = draw(st.sampled_from([("s", "r"), ("s", "r"), ("s", "s")]))
    query = joined(draw(WINDOWS), draw(WINDOWS), predicate.sql, predicate.on, names=names)
    return {"random": query}
