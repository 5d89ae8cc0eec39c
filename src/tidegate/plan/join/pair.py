"""Binds expressions over pairs of a join to the columns l* and r* of its operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from tidegate.batch import DECIDED
from tidegate.expression.tree import Expr, describe, renamed
from tidegate.operate.join.kind import INNER, OWN, JoinKind
from tidegate.operate.port import Port
from tidegate.plan.compatibility.canonical import PortForm
from tidegate.plan.compatibility.fingerprint import meaning
from tidegate.plan.compatibility.query_record import Texts, written
from tidegate.plan.fold import fold
from tidegate.plan.prefix import spark_sql
from tidegate.query.check import bind_after
from tidegate.query.name import EVENT_TIME, NamedExpr, column, substitute
from tidegate.schema import TIME


@dataclass(frozen=True)
class PairColumns:
    """The columns of pairs: what each is called in the operator, and its type."""

    names: Mapping[str, str]
    types: Mapping[str, pa.DataType]
    kind: JoinKind = INNER

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
        own = self._shown
        selected = tuple((n, own.bound(e, "SELECT")) for n, e in outputs)
        fields = [pa.field(EVENT_TIME, TIME), *(pa.field(n, e.type) for n, e in selected)]
        held = tuple(own.bound(e, "WHERE", predicate=True) for e in where)
        if own is self:
            return Port(pa.schema(fields), selected, held)
        shown = (EVENT_TIME, own.bound(column(EVENT_TIME), "SELECT"))
        return Port(pa.schema(fields), (shown, *selected), held, time=DECIDED)

    def form(self, outputs: Sequence[NamedExpr], where: Sequence[exp.Expression]) -> PortForm:
        """The same in canonical form."""
        own = self._shown
        columns = [(name, own._physical(e)) for name, e in outputs]
        return PortForm(columns, [own._physical(e) for e in where])

    @property
    def _shown(self) -> PairColumns:
        """The columns of rows that are put out, whose `ts` may be a time of their own."""
        if not self.kind.tracked:
            return self
        return replace(self, names={**self.names, EVENT_TIME: OWN})

    def written(self, expression: exp.Expression, texts: Texts) -> str:
        """What an expression means, in the words of the query."""
        return written(self._physical(expression), texts)

    def _physical(self, expression: exp.Expression) -> exp.Expression:
        return substitute(expression, {flat: column(name) for flat, name in self.names.items()})
