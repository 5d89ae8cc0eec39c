"""Names a join's columns without its sides, for nodes that read columns by position."""

from __future__ import annotations

from collections.abc import Collection

from tidegate.errors import QueryError
from tidegate.query.clause.column import KEPT
from tidegate.query.name import EVENT_TIME, SideName, column, refuse_taken
from tidegate.query.node.node import Branch, Filter, Node, Project, TableJoin, result_columns
from tidegate.query.node.stream_pair import Paired


def unqualified(node: Node) -> Node:
    """The node with plain column names: after a join, without the qualifying side."""
    columns = unqualified_columns(node)
    if all(name == own for name, own in columns):
        return node
    return Project(node, tuple((name, column(own)) for name, own in columns))


def unqualified_columns(node: Node, without: Collection[str] = ()) -> list[tuple[str, str]]:
    """The columns of a result after the implicit ones, as pairs: the plain name, the name in the
    node.

    After a join without a select list these are all columns of the left side, then of the right.
    Columns in `without` are left out if the right side is a table.
    """
    base = node
    while isinstance(base, Filter | Branch):
        base = base.child
    if isinstance(base, TableJoin) and not base.filters:
        held = [(n, n) for n in base.table.schema.names if n not in without]
        named = list(zip(base.labels, (unqualified_columns(base.child), held), strict=True))
    elif isinstance(base, Paired):
        left, right = map(unqualified_columns, base.children)
        sides = (left, [(name, own) for name, own in right if own not in base.shared])
        named = [(base.labels[side], sides[side]) for side in base.shown_sides]
    else:
        return result_columns(node)
    found: dict[str, tuple[str, str]] = {}
    for label, columns in named:
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
