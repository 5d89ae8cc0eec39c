"""Outer, semi and anti joins tuple by tuple, from the pairs of the inner join: their twin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.oracle.join import LEFT, RIGHT, Cells, Joined, Row, Within, pairs

KEEPS = {"left": (LEFT,), "right": (RIGHT,), "full": (LEFT, RIGHT), "anti": (LEFT,)}
"""Of which sides tuples without a partner are put out."""


@dataclass(frozen=True)
class OuterRow:
    """A row: when it is, the time that it shows, and its tuples, None for a missing one."""

    at: int
    ts: int
    left: Row | None
    right: Row | None


def outer_rows(
    how: str,
    tuples: Sequence[Row],
    found: Sequence[tuple[int, Row, Row]],
    ranges_us: tuple[int, int],
) -> list[OuterRow]:
    """All rows in order; `found` are the matching pairs of the tuples, both in their order."""
    rows = list(_of_pairs(how, found))
    met = {id(row) for _, *pair in found for row in pair}
    for t in tuples:
        side = t["stream"]
        if side in KEEPS.get(how, ()) and id(t) not in met:
            pair = (t, None) if side == LEFT else (None, t)
            rows.append(OuterRow(t["ts"] + ranges_us[side], t["ts"], *pair))
    # The sort is stable: pairs are before what has no partner, and that in the order of tuples.
    return sorted(rows, key=lambda row: row.at)


def outer_join(query: Joined, tuples: Sequence[Row]) -> list[Cells]:
    """The output: the time that a row shows, then the select list; a missing tuple has no cells."""
    assert isinstance(query.left, Within)
    assert isinstance(query.right, Within)
    found = [(ts, a, b) for ts, a, b in pairs(query, tuples) if query.on(a, b) is True]
    rows = outer_rows(query.how, tuples, found, (query.left.range_us, query.right.range_us))
    return [(row.ts, *query.select(row.left or {}, row.right or {})) for row in rows]


def _of_pairs(how: str, found: Sequence[tuple[int, Row, Row]]) -> Iterator[OuterRow]:
    if how == "anti":
        return
    seen = set()
    for at, left, right in found:
        if how != "semi":
            yield OuterRow(at, at, left, right)
        elif id(left) not in seen:
            seen.add(id(left))
            yield OuterRow(at, left["ts"], left, None)
