"""Binds FROM stream JOIN table ON ... to the join of a stream to a table."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.operate.table_join.lookup import ANTI, INNER, LEFT, SEMI
from tidegate.query.join import SIDES
from tidegate.query.node import TableJoin
from tidegate.query.table import TableDef
from tidegate.sql.join import Relation, join_condition
from tidegate.sql.scope import PairScope, Scope

_HOW = {
    ("", ""): INNER,
    ("", "INNER"): INNER,
    ("", "CROSS"): INNER,
    ("LEFT", ""): LEFT,
    ("LEFT", "OUTER"): LEFT,
    ("", "SEMI"): SEMI,
    ("LEFT", "SEMI"): SEMI,
    ("", "ANTI"): ANTI,
    ("LEFT", "ANTI"): ANTI,
}


def join_table(join: exp.Join, left: Relation, table: TableDef, alias: str, text: str) -> Relation:
    """The join of a relation to a table; a window of the relation is one over the result."""
    words = join.text("side").upper(), join.text("kind").upper()
    if words not in _HOW:
        raise QueryError(
            "JOIN",
            f"a stream is joined to {table.where} by JOIN, LEFT JOIN, SEMI JOIN or ANTI JOIN",
            " ".join([*filter(None, words), "JOIN"]),
            "A table has no event time, so its rows cannot stand alone. Write the stream first.",
        )
    first = replace(left.single, alias=left.alias or SIDES[0])
    scope = PairScope(first, Scope(alias, tuple(table.schema.names), ()))
    scope, predicate = join_condition(join, scope, f"{left.text} JOIN {text}")
    node = TableJoin(left.node, table, predicate, _HOW[words], (first.alias or "", alias))
    if node.filters:
        return replace(left, node=node)
    return Relation(node, None, left.window, f"{left.text} JOIN {text}", pair=scope)
