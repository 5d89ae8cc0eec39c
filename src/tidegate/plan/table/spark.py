"""Finds what Spark has to compute of tuples before they are joined to a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from tidegate.plan.pushdown import Leaf
from tidegate.query.binder import UnknownKernel, bind
from tidegate.query.name import as_expression, column


@dataclass
class Lifting:
    """Puts columns in the place of parts that have no kernel and are over the input alone.

    `types` are those of all columns, `own` the names of the input's; `columns` are what Spark is to
    compute, with the names that stand for it.
    """

    types: Mapping[str, pa.DataType]
    own: Collection[str]
    columns: dict[exp.Expression, str] = field(default_factory=dict)

    def leaf(self, leaf: Leaf) -> Leaf:
        """A leaf with such columns in its conditions."""
        tables = tuple(
            replace(
                table,
                where=tuple(map(self.lifted, table.where)),
                predicate=None if table.predicate is None else self.lifted(table.predicate),
            )
            for table in leaf.tables
        )
        return replace(leaf, where=tuple(map(self.lifted, leaf.where)), tables=tables)

    def lifted(self, expression: exp.Expression) -> exp.Expression:
        """An expression in which the largest of such parts are columns."""

        def lift(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Condition) or isinstance(node, exp.Column):
                return node
            inside = {c.name for c in node.find_all(exp.Column)}
            if not inside or not inside <= set(self.own) or self._has_kernel(node):
                return node
            part = as_expression(node)
            return column(self.columns.setdefault(part, f"~{len(self.columns)}"))

        return as_expression(expression.copy().transform(lift, copy=False))

    def read(self, outputs: Iterable[exp.Expression], leaf: Leaf) -> list[str]:
        """The columns of the input that are still read as they are."""
        conditions = (e for table in leaf.tables for e in table.conditions)
        used = {
            c.name for e in (*outputs, *leaf.where, *conditions) for c in e.find_all(exp.Column)
        }
        return [name for name in self.own if name in used]

    def _has_kernel(self, node: exp.Expr) -> bool:
        try:
            bind(node, self.types, "SELECT")
        except UnknownKernel:
            return False
        return True
