"""Columns of a join without the names of its sides, for what reads columns by position."""

from __future__ import annotations

from collections.abc import Collection

from tidegate.errors import QueryError
from tidegate.query.clause.column import KEPT
from tidegate.query.name import EVENT_TIME, SideName, column, refuse_taken
from tidegate.query.node import Branch, Filter, Node, Project, TableJoin, result_columns
from tidegate.query.paired import Paired


def unqualified(node: Node) -> Node:
    """A node whose columns have plain names: after a join, without the side that qualifies them."""
    columns = unqualified_columns(node)
    if all(name == own for name, own in columns):
        return node
    return Project(node, tuple((name, column(own)) for name, own in columns))


def unqualified_columns(node: Node, without: Collection[str] = ()) -> list[tuple[str, str]]:
    """The columns of a result after the implicit ones: the plain name, and that in the node.

    All of the left side and then of the right, where nothing was selected after a join; of a table
    on the right not those that are in `without`.
    """
    base = node
    while isinstance(base, Filter | Branch):
        base = base.child
    if isinstance(base, TableJoin) and not base.filters:
        named = ((n, n) for n in base.table.schema.names if n not in without)
        sides = [unqualified_columns(base.child), list(named)]
    elif isinstance(base, Paired):
        left, right = map(unqualified_columns, base.children)
        all_sides = left, [(name, own) for name, own in right if own not in base.shared]
        sides = [all_sides[side] if side in base.shown_sides else [] for side in (0, 1)]
    else:
        return result_columns(node)
    found: dict[str, tuple[str, str]] = {}
    for label, columns in zip(base.labels, sides, strict=True):
        for name, own in columns:
            if name.lower() in found or name == EVENT_TIME:
                raise QueryError(
                    "join",
                    "every column of the result needs a name of its own",
                    f"{name} on both sides" if name != EVENT_TIME else name,
                    "Select the columns, and rename one of the two with alias().",
                )
            found[name.lower()] = (name, SideName(label, own))
    if isinstance(base, Paired) and base.shed is not None:
        refuse_taken(found, (KEPT,), f"WITH {base.shed}")
        found[KEPT] = (KEPT, KEPT)
    return list(found.values())
