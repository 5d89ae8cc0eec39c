"""Finds the partners of semi joins, which a row does not show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from tidegate.operate.join.kind import INNER
from tidegate.query.name import NamedExpr, SideName
from tidegate.query.node.join import Join
from tidegate.query.node.node import Project
from tidegate.query.trace import WHY, Traced, joined
from tidegate.session.why.origin import TupleId, ids_of, made_of
from tidegate.session.why.runs import TracedQuery
from tidegate.session.why.span import TupleSpan


def of_partners(
    runs: TracedQuery, node: Join, found: Mapping[int, Traced], ids: set[TupleId], span: TupleSpan
) -> set[TupleId]:
    """The tuples of the first partner of each tuple of a semi join that is made of these ids.

    Runs the join once more, for its pairs, whose first ones are those that made the rows; holds one
    partner for each tuple in question.
    """
    if not node.kind.first:
        return set()
    sides = [found[id(child)] for child in node.children]
    columns: list[NamedExpr] = [
        (f"{WHY}{label}", joined(tuple(SideName(label, name) for name in names)))
        for label, (_, names) in zip(node.labels, sides, strict=True)
    ]
    pairs = replace(node, left=sides[0][0], right=sides[1][0], kind=INNER)
    home = node.kind.home
    assert home is not None, "one side is kept"
    partners: dict[str, str] = {}

    def note_first(rows: pa.Table) -> bool:
        mine, theirs = (rows.column(columns[side][0]) for side in (home, 1 - home))
        mask = pa.array(made_of(mine, ids))
        for kept, partner in zip(
            *(c.filter(mask).to_pylist() for c in (mine, theirs)), strict=True
        ):
            partners.setdefault(kept, partner)
        return span.ends_before(rows)

    runs.traced_rows(Project(pairs, tuple(columns)), span.low_us, note_first)
    return ids_of(partners.values())
