"""A table below an operator, as part of the way that tuples take to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from tidegate.operate.join.kind import JoinKind
from tidegate.query.name import SideName, column, conjuncts, substitute
from tidegate.query.node.table_join import TableJoin
from tidegate.query.table import TableDef


@dataclass(frozen=True)
class TableLeaf:
    """The join to a table, over the columns of the input and of the tables before it.

    `where` are the conditions that tuples meet before it, `names` what the columns of the table are
    called in expressions after it.
    """

    table: TableDef
    kind: JoinKind
    where: tuple[exp.Expression, ...]
    predicate: exp.Expression | None
    names: Mapping[str, str]

    @property
    def conditions(self) -> tuple[exp.Expression, ...]:
        """All that is asked of tuples on the way through it."""
        return (*self.where, *(() if self.predicate is None else conjuncts(self.predicate)))

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The columns of the table by their names in expressions."""
        return {self.names[field.name]: field.type for field in self.table.schema}


def table_leaf(
    node: TableJoin,
    where: tuple[exp.Expression, ...],
    columns: Mapping[str, exp.Expression],
    taken: Collection[str],
) -> TableLeaf:
    """The table of a node over the `columns` of its child; `taken` are names of other columns."""
    label = node.labels[1]
    while any(f"{label}.{name}" in taken for name in node.table.schema.names):
        label += "'"
    names = {name: f"{label}.{name}" for name in node.table.schema.names}
    predicate = node.predicate
    if predicate is not None:
        sides: dict[str, exp.Expression] = {
            SideName(node.labels[0], n): e for n, e in columns.items()
        }
        sides |= {SideName(node.labels[1], n): column(own) for n, own in names.items()}
        predicate = substitute(predicate, sides)
    return TableLeaf(node.table, node.kind, where, predicate, names)
