"""Expressions over pairs of a join, between the names of its sides and the columns l* and r*."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from tidegate.expression.tree import Expr, describe, renamed
from tidegate.operate.port import Port
from tidegate.plan.fingerprint import meaning
from tidegate.plan.fold import fold
from tidegate.plan.lowered import output_lines
from tidegate.plan.prefix import spark_sql
from tidegate.plan.recorded import Texts, select_lines, written
from tidegate.query.check import bind_after
from tidegate.query.name import EVENT_TIME, NamedExpr, column, substitute
from tidegate.schema import TIME


@dataclass(frozen=True)
class PairColumns:
    """The columns of pairs: what each is called in the operator, and its type."""

    names: Mapping[str, str]
    types: Mapping[str, pa.DataType]

    def bound(self, expression: exp.Expression, where: str, predicate: bool = False) -> Expr:
        """An expression bound to kernels, over the operator's columns."""
        remedy = "On pairs there is no Spark SQL: compute it from one side, or from the output."
        types = {**self.types, EVENT_TIME: TIME}
        return renamed(fold(bind_after(expression, types, where, predicate, remedy)), self.names)

    def text(self, expr: Expr) -> str:
        """A bound expression over the operator's columns as the query names them."""
        return describe(renamed(expr, {name: flat for flat, name in self.names.items()}))

    def meaning(self, expression: exp.Expression) -> str:
        """What an expression means, for the fingerprint."""
        return meaning(spark_sql(self._physical(expression)))

    def port(self, outputs: Sequence[NamedExpr], where: Sequence[exp.Expression]) -> Port:
        """What follows the join for one that takes its rows."""
        selected = tuple((n, self.bound(e, "SELECT")) for n, e in outputs)
        fields = [pa.field(EVENT_TIME, TIME), *(pa.field(n, e.type) for n, e in selected)]
        held = tuple(self.bound(e, "WHERE", predicate=True) for e in where)
        return Port(pa.schema(fields), selected, held)

    def lines(self, outputs: Sequence[NamedExpr], where: Sequence[exp.Expression]) -> list[str]:
        """The same for the fingerprint."""
        lines = [f"where {self.meaning(e)}" for e in where]
        return lines + output_lines((n, self._physical(e)) for n, e in outputs)

    def written(self, expression: exp.Expression, texts: Texts) -> str:
        """What an expression means, in the words of the query."""
        return written(self._physical(expression), texts)

    def shown(
        self, outputs: Sequence[NamedExpr], where: Sequence[exp.Expression], texts: Texts
    ) -> list[str]:
        """What follows the join, in the words of the query."""
        lines = [f"where {self.written(e, texts)}" for e in where]
        return lines + select_lines([(n, self._physical(e)) for n, e in outputs], texts)

    def _physical(self, expression: exp.Expression) -> exp.Expression:
        return substitute(expression, {flat: column(name) for flat, name in self.names.items()})
