"""Binds FROM stream JOIN table ON ... to the join of a stream to a table."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.query.node.node import TableJoin
from tidegate.query.table import TableDef
from tidegate.sql.relation.join import join_condition
from tidegate.sql.relation.join_kind import SQL_KINDS, join_words
from tidegate.sql.relation.relation import JoinedSides, Relation
from tidegate.sql.scope import Scope


def join_table(join: exp.Join, left: Relation, table: TableDef, alias: str, text: str) -> Relation:
    """The join of a relation to a table; the relation's window becomes one over the result."""
    asof = join.method.upper() == "ASOF"
    if asof or join.args.get("match_condition") is not None:
        raise QueryError(
            "ASOF JOIN" if asof else "MATCH_CONDITION",
            "is for streams, because rows of a table have no event time",
            table.where,
            f"Write CREATE TABLE {table.name} ... VALID FROM column, and JOIN, for the newest row "
            "of a key at the time of each tuple.",
        )
    sides = JoinedSides.of(left, Scope(alias, tuple(table.schema.names), ()))
    text = f"{left.text} JOIN {text}"
    scope, predicate = join_condition(join, sides, text)
    node = TableJoin(left.node, table, predicate, SQL_KINDS[join_words(join)], sides.labels)
    if node.filters:
        return replace(left, node=node)
    return Relation(node, None, left.window, text, left.reach, scope)
