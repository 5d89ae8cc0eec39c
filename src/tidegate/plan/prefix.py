"""The rule that turns a leaf of the query into the stateless work of its prefix.

It decides which engine evaluates it: the kernels, or Spark SQL where an expression has no kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.expression.tree import Column, Expr, is_total
from tidegate.plan.determinism import require_deterministic
from tidegate.plan.fold import fold
from tidegate.plan.physical import ARROW, SPARK, Edge, Prefix
from tidegate.plan.pushdown import EarlierRows, Leaf, Origin, Results, below
from tidegate.query.check import bind_after
from tidegate.query.definition import StreamDef
from tidegate.query.name import NamedExpr, is_plain
from tidegate.query.node import Node
from tidegate.query.typing import UnknownKernel, bind, bind_predicate
from tidegate.schema import check_own_types, foreign_part, type_name

Typer = Callable[[Sequence[str], pa.Schema], Sequence[pa.DataType]]
"""Asks Spark for the types of SQL expressions over a schema."""


def spark_sql(expression: exp.Expression) -> str:
    """The Spark SQL of an expression, every name quoted."""
    if is_plain(expression) and "`" not in expression.name:
        return f"`{expression.name}`"  # what the generator makes of it, in no time
    return expression.sql(dialect="spark", identify=True, comments=False)


@dataclass(frozen=True)
class Prefixing:
    """Makes prefixes; without a typer the error of a missing kernel is raised.

    `results` knows which nodes are results of other subqueries, `number` gives a stream its number.
    """

    typer: Typer | None
    results: Results
    number: Callable[[StreamDef], int]

    def leaves(self, node: Node) -> tuple[Leaf, ...]:
        """The inputs below what an operator reads."""
        return below(node, self.types, self.results)

    def prefixes(
        self, leaves: Sequence[Leaf], outputs: Sequence[Sequence[NamedExpr]]
    ) -> tuple[Prefix, ...]:
        """One per leaf; their outputs have one type."""
        prefixes = tuple(
            self._prefix(leaf, named) for leaf, named in zip(leaves, outputs, strict=True)
        )
        for other in prefixes[1:]:
            for (name, one), (_, here) in zip(prefixes[0].outputs, other.outputs, strict=True):
                if one.type != here.type:
                    raise QueryError(
                        "UNION ALL",
                        f"{name} must have one type on every side",
                        f"{type_name(one.type)} and {type_name(here.type)}",
                        "CAST one of them.",
                    )
        return prefixes

    def _prefix(self, leaf: Leaf, named: Sequence[NamedExpr]) -> Prefix:
        origin = leaf.origin
        for part in leaf.where:
            require_deterministic(part, "WHERE")
        for _, part in named:
            require_deterministic(part, "SELECT")
        parts = (*leaf.where, *(e for _, e in named))
        read = {c.name for part in parts for c in part.find_all(exp.Column)}
        reads = pa.schema([field for field in origin.schema if field.name in read])
        if not isinstance(origin, EarlierRows):
            check_own_types(reads, f"stream {origin.name}")
        texts = [spark_sql(_safe(e)) for e in leaf.where]
        sql_outputs = tuple((n, spark_sql(e)) for n, e in named)
        where, outputs, engine, reason = self._engine(leaf, named, texts, sql_outputs)
        return Prefix(
            origin=self._place(origin),
            name=origin.name,
            time=origin.time,
            columns=tuple(reads.names),
            where=where,
            outputs=outputs,
            engine=engine,
            sql_where=" AND ".join(texts) or None,
            sql_outputs=sql_outputs,
            reason=reason,
            offset_us=origin.offset_us if isinstance(origin, EarlierRows) else 0,
        )

    def _place(self, origin: Origin) -> int | Edge:
        return origin.edge if isinstance(origin, EarlierRows) else self.number(origin)

    def _engine(
        self,
        leaf: Leaf,
        named: Sequence[NamedExpr],
        texts: Sequence[str],
        sql_outputs: Sequence[tuple[str, str]],
    ) -> tuple[tuple[Expr, ...], tuple[tuple[str, Expr], ...], str, str | None]:
        raw = _raw_types(leaf.origin)
        if isinstance(leaf.origin, EarlierRows):
            where = tuple(fold(bind_after(e, raw, "WHERE", predicate=True)) for e in leaf.where)
            outputs = tuple((n, fold(bind_after(e, raw, "SELECT"))) for n, e in named)
            return where, outputs, ARROW, None
        try:
            where = tuple(fold(bind_predicate(e, raw, "WHERE")) for e in leaf.where)
            outputs = tuple((n, fold(bind(e, raw, "SELECT"))) for n, e in named)
            return where, outputs, ARROW, None
        except UnknownKernel as missing:
            if self.typer is None:
                raise
            reason = missing.requirement
        types = self.typer([*(t for _, t in sql_outputs), *texts], _own(leaf.origin.schema))
        for text, type_ in zip(texts, types[len(sql_outputs) :], strict=True):
            if not pa.types.is_boolean(type_):
                raise QueryError("WHERE", f"{text} must be true or false", type_name(type_))
        columns = tuple((n, Column(n, t)) for (n, _), t in zip(sql_outputs, types, strict=False))
        return (), columns, SPARK, reason

    def types(self, origin: Origin, expressions: Sequence[exp.Expression]) -> Sequence[pa.DataType]:
        """The types of expressions over the columns of an input."""
        raw = _raw_types(origin)
        if isinstance(origin, EarlierRows):
            return [bind_after(e, raw, "SELECT").type for e in expressions]
        try:
            return [bind(e, raw, "SELECT").type for e in expressions]
        except UnknownKernel:
            if self.typer is None:
                raise
            return self.typer([spark_sql(e) for e in expressions], _own(origin.schema))

    def can_fail(self, origin: Origin, expression: exp.Expression) -> bool:
        """Whether a row can make an expression fail, as far as is known here."""
        try:
            return not is_total(bind(expression, _raw_types(origin), "SELECT"))
        except UnknownKernel:
            return True


def _own(schema: pa.Schema) -> pa.Schema:
    """The columns of a schema that the engine can compute with; Spark knows no others either."""
    return pa.schema([field for field in schema if foreign_part(field.type) is None])


def _raw_types(origin: Origin) -> dict[str, pa.DataType]:
    return {f.name: f.type for f in origin.schema}


def _safe(condition: exp.Expression) -> exp.Expression:
    """A condition that AND can stand beside."""
    return exp.Paren(this=condition.copy()) if isinstance(condition, exp.Or) else condition
