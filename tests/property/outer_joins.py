"""The outer, semi and anti joins whose output must not depend on how they are run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.oracle.join import Joined, Row, Within
from tests.property.joins import ITEMS, JOINED
from tests.property.queries import Query

KINDS = ("left", "right", "full", "semi", "anti")
ALONE = "l.d AS l, l.ts AS l_ts, l.x AS x"
"""What the rows of a semi or anti join have."""


def outer(query: Query, how: str) -> Query:
    """A join of another kind with the windows and the condition of an inner one."""
    assert isinstance(query.plain, Joined)
    alone = how in ("semi", "anti")
    text = query.sql.replace(" JOIN ", f" {how.upper()} JOIN ")
    text = text.replace(ITEMS, ALONE) if alone else text
    plain = replace(query.plain, how=how, select=_alone if alone else _pair)
    return replace(query, sql=text, plain=plain)


def _pair(left: Row, right: Row) -> tuple[Any, ...]:
    cells = [(left, "d"), (right, "d"), (left, "ts"), (right, "k"), (left, "x"), (right, "i")]
    return tuple(row.get(name) for row, name in cells)


def _alone(left: Row, right: Row) -> tuple[Any, ...]:
    return left["d"], left["ts"], left["x"]


def can_be_outer(query: Query) -> bool:
    """Whether windows are of time and the condition is all in ON."""
    plain = query.plain
    timely = isinstance(plain, Joined) and all(
        isinstance(w, Within) for w in (plain.left, plain.right)
    )
    return timely and " WHERE " not in query.sql


OUTER = {
    f"{how}, {name}": outer(query, how)
    for name, query in JOINED.items()
    if can_be_outer(query)
    for how in KINDS
}
