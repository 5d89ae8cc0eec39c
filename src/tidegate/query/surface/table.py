"""Table: rows that streams can be joined to; made by a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import NoAttributeError, QueryError
from tidegate.operate.join.kind import JoinKind
from tidegate.query.name import SideName, column, resolve
from tidegate.query.node.node import Node, Project, TableJoin
from tidegate.query.node.stream_pair import SIDES
from tidegate.query.surface.arguments import join_condition
from tidegate.query.surface.stream_view import columns_html
from tidegate.query.table import TableDef
from tidegate.query.unqualified import unqualified_columns
from tidegate.schema import columns_text, type_name


@dataclass(frozen=True, repr=False)
class Table:
    """A table. It has no event time, so a query can only join streams to it."""

    definition: TableDef

    @property
    def schema(self) -> pa.Schema:
        """The columns with their Arrow types."""
        return self.definition.schema

    @property
    def columns(self) -> tuple[str, ...]:
        """The column names."""
        return tuple(self.definition.schema.names)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise NoAttributeError(
            "table",
            "has no event time, so a query needs a stream that it is joined to",
            f".{name}",
            f'Write stream.join({self.definition.name}, on="id"), or make a stream of it: '
            'session.stream(source, time="ts").',
        )

    def __repr__(self) -> str:
        return f"Table({columns_text(self.schema)}; {self.definition.where})"

    def _repr_html_(self) -> str:
        types = {field.name: type_name(field.type) for field in self.schema}
        return columns_html(types, f"Table: {self.definition.where}")


def definition_of(given: Any, where: str) -> TableDef:
    """The definition of a session's table; raises for anything else."""
    if isinstance(given, Table):
        return given.definition
    raise QueryError(
        where,
        "must be a table of the session",
        type(given).__name__,
        "Write session.table(...) around it, which takes paths, rows and frames.",
    )


def table_join(node: Node, table: TableDef, on: Any, kind: JoinKind) -> Node:
    """The node of `stream.join(table, on=...)`.

    `on` is an expression over `left` and `right`, or names of columns that both have; a result has
    these columns once.
    """
    if isinstance(on, str) or (isinstance(on, Sequence) and all(isinstance(n, str) for n in on)):
        return _using(node, table, [on] if isinstance(on, str) else list(on), kind)
    condition = join_condition(on)
    if not isinstance(condition, exp.Expression):
        raise QueryError(
            "join",
            "the condition of a table must be an expression over left and right",
            "a function",
            "Write for example on=left.zone == right.id.",
        )
    return TableJoin(node, table, condition, kind)


def _using(node: Node, table: TableDef, names: Sequence[str], kind: JoinKind) -> Node:
    if not names:
        raise QueryError("join", "needs a column that both sides have", "none")
    found = [
        (resolve(n, node.names, "join"), resolve(n, table.schema.names, "join")) for n in names
    ]
    equal: list[exp.Expression] = [
        exp.EQ(this=column(SideName(SIDES[0], mine)), expression=column(SideName(SIDES[1], other)))
        for mine, other in found
    ]
    condition = reduce(lambda a, b: exp.And(this=a, expression=b), equal)
    joined = TableJoin(node, table, condition, kind)
    if joined.filters:
        return joined
    columns = unqualified_columns(joined, without={other for _, other in found})
    return Project(joined, tuple((name, column(own)) for name, own in columns))
