"""Makes the prefix of each input of a subquery, and decides which engine evaluates it.

Kernels evaluate it; Spark SQL does if an expression has no kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.expression.tree import Column, Expr, columns_of, is_total
from tidegate.operate.join.kind import SPARK_NAMES
from tidegate.operate.table_join.lookup import TableLookup
from tidegate.plan.compatibility.fingerprint import meaning
from tidegate.plan.determinism import require_deterministic
from tidegate.plan.fold import fold
from tidegate.plan.physical import ARROW, SPARK, Edge, Prefix
from tidegate.plan.pushdown import EarlierRows, Leaf, Origin, Results, below
from tidegate.plan.table.leaf import TableLeaf
from tidegate.plan.table.lookup import bound_lookups
from tidegate.plan.table.spark import Lifting
from tidegate.query.binder import UnknownKernel, bind, bind_predicate
from tidegate.query.check import AFTER_WINDOW, bind_after
from tidegate.query.definition import StreamDef
from tidegate.query.name import NamedExpr, column, is_plain
from tidegate.query.node.node import Node
from tidegate.schema import check_own_types, foreign_part, type_name

Typer = Callable[[Sequence[str], pa.Schema], Sequence[pa.DataType]]
"""Returns the types that Spark gives to SQL expressions over a schema."""


_BEFORE_TABLE = (
    "Spark SQL is asked before a table is joined: compute it of columns of the stream, or from "
    "the output."
)


def spark_sql(expression: exp.Expression) -> str:
    """The Spark SQL of an expression, every name quoted."""
    if is_plain(expression) and "`" not in expression.name:
        return f"`{expression.name}`"  # the same text that the generator makes, much faster
    return expression.sql(dialect="spark", identify=True, comments=False)


@dataclass(frozen=True)
class Prefixing:
    """Makes prefixes; without a `typer` a missing kernel is an error.

    `results` returns the rows of a node that another subquery emits. `number` returns the number of
    a stream in the plan.
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
        """One prefix per leaf; an error if an output has different types in two of them."""
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
        conditions = [*(e for table in leaf.tables for e in table.conditions), *leaf.where]
        for part in conditions:
            require_deterministic(part, "WHERE")
        for _, part in named:
            require_deterministic(part, "SELECT")
        parts = (*conditions, *(e for _, e in named))
        read = {c.name for part in parts for c in part.find_all(exp.Column)}
        reads = pa.schema([field for field in origin.schema if field.name in read])
        if not isinstance(origin, EarlierRows):
            check_own_types(reads, f"stream {origin.name}")
        texts = [spark_sql(_safe(e)) for e in leaf.where]
        sql_outputs = tuple((n, spark_sql(e)) for n, e in named)
        found = self._engine(leaf, named, texts, sql_outputs)
        return Prefix(
            origin=self._place(origin),
            name=origin.name,
            time=origin.time,
            columns=tuple(reads.names),
            where=found.where,
            outputs=found.outputs,
            engine=found.engine,
            sql_where=" AND ".join(texts) or None,
            sql_outputs=sql_outputs,
            reason=found.reason,
            offset_us=origin.offset_us if isinstance(origin, EarlierRows) else 0,
            lookups=found.lookups,
            early=found.early,
            joins=tuple(join_text(table) for table in leaf.tables),
        )

    def _place(self, origin: Origin) -> int | Edge:
        return origin.edge if isinstance(origin, EarlierRows) else self.number(origin)

    def _engine(
        self,
        leaf: Leaf,
        named: Sequence[NamedExpr],
        texts: Sequence[str],
        sql_outputs: Sequence[tuple[str, str]],
    ) -> _Evaluation:
        if isinstance(leaf.origin, EarlierRows):
            with _refused(AFTER_WINDOW):
                return _evaluation(leaf, named, leaf.types)
        try:
            return _evaluation(leaf, named, leaf.types)
        except UnknownKernel as missing:
            if self.typer is None:
                raise
            reason = missing.requirement
        if leaf.tables:
            return self._early(leaf, named, reason)
        types = self.typer([*(t for _, t in sql_outputs), *texts], _own(leaf.origin.schema))
        for text, type_ in zip(texts, types[len(sql_outputs) :], strict=True):
            if not pa.types.is_boolean(type_):
                raise QueryError("WHERE", f"{text} must be true or false", type_name(type_))
        columns = tuple((n, Column(n, t)) for (n, _), t in zip(sql_outputs, types, strict=False))
        return _Evaluation((), columns, SPARK, reason)

    def _early(self, leaf: Leaf, named: Sequence[NamedExpr], reason: str) -> _Evaluation:
        """The evaluation of a leaf with tables: Spark computes what has no kernel before the join.

        That works only for expressions over columns of the input.
        """
        assert self.typer is not None
        lifting = Lifting(leaf.types, leaf.origin.schema.names)
        over = lifting.leaf(leaf)
        outputs = [(name, lifting.lifted(e)) for name, e in named]
        read = lifting.read((e for _, e in outputs), over)
        early = [*((n, column(n)) for n in read), *((n, e) for e, n in lifting.columns.items())]
        texts = tuple((name, spark_sql(e)) for name, e in early)
        types = self.typer([text for _, text in texts], _own(leaf.origin.schema))
        known = dict(zip((name for name, _ in texts), types, strict=True))
        with _refused(_BEFORE_TABLE):
            found = _evaluation(over, outputs, known | leaf.types)
        return replace(found, engine=SPARK, reason=reason, early=texts)

    def types(self, leaf: Leaf, expressions: Sequence[exp.Expression]) -> Sequence[pa.DataType]:
        """The types of expressions over the columns of a leaf."""
        raw = leaf.types
        if isinstance(leaf.origin, EarlierRows):
            return [bind_after(e, raw, "SELECT").type for e in expressions]
        try:
            return [bind(e, raw, "SELECT").type for e in expressions]
        except UnknownKernel:
            if self.typer is None:
                raise
            schema = pa.schema(list(raw.items()))
            return self.typer([spark_sql(e) for e in expressions], _own(schema))

    def can_fail(self, leaf: Leaf, expression: exp.Expression) -> bool:
        """Whether a row may make an expression fail; true for expressions without a kernel."""
        try:
            return not is_total(bind(expression, leaf.types, "SELECT"))
        except UnknownKernel:
            return True


@dataclass(frozen=True)
class _Evaluation:
    """The engine of a prefix, and what it evaluates."""

    where: tuple[Expr, ...]
    outputs: tuple[tuple[str, Expr], ...]
    engine: str = ARROW
    reason: str | None = None
    lookups: tuple[TableLookup, ...] = ()
    early: tuple[tuple[str, str], ...] = ()


def _evaluation(
    leaf: Leaf, named: Sequence[NamedExpr], types: Mapping[str, pa.DataType]
) -> _Evaluation:
    """Evaluate a leaf by kernels alone; raises UnknownKernel if one is missing."""
    where = tuple(fold(bind_predicate(e, types, "WHERE")) for e in leaf.where)
    outputs = tuple((n, fold(bind(e, types, "SELECT"))) for n, e in named)
    if not leaf.tables:
        return _Evaluation(where, outputs)
    lookups = bound_lookups(leaf.tables, types, [*where, *(e for _, e in outputs)])
    added = {name for table in leaf.tables for name in table.types}
    # Conditions on the tuple alone come before the lookup, which they save. Only if they cannot
    # fail: a tuple without a match must not raise an error that the query would never see.
    early = tuple(e for e in where if is_total(e) and not added & set(columns_of(e)))
    first = replace(lookups[0], where=(*lookups[0].where, *early))
    return _Evaluation(
        tuple(e for e in where if e not in early), outputs, lookups=(first, *lookups[1:])
    )


@contextmanager
def _refused(remedy: str) -> Iterator[None]:
    """Turn a missing kernel into an error of the query, where Spark cannot evaluate instead."""
    try:
        yield
    except UnknownKernel as missing:
        raise QueryError(missing.where, missing.requirement, missing.got, remedy) from None


def join_text(table: TableLeaf) -> str:
    """The meaning of a join to a table as text, for fingerprints and `explain`."""
    on = "nothing" if table.predicate is None else meaning(spark_sql(table.predicate))
    where = " AND ".join(sorted(meaning(spark_sql(_safe(e))) for e in table.where))
    how = next(name for name, kind in SPARK_NAMES.items() if kind == table.kind)
    return f"{f'where {where}, ' if where else ''}{how} join {table.table.words} on {on}"


def _own(schema: pa.Schema) -> pa.Schema:
    """The columns whose types the engine supports; Spark gets only these as well."""
    return pa.schema([field for field in schema if foreign_part(field.type) is None])


def _safe(condition: exp.Expression) -> exp.Expression:
    """The condition, in parentheses if it is an OR, so that it can be joined by AND."""
    return exp.Paren(this=condition.copy()) if isinstance(condition, exp.Or) else condition
