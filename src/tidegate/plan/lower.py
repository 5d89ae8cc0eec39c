"""Lowering: logical nodes become the physical plan that tasks run, in the StreamCloud way.

The one stateful operator and the stateless work after it are one subquery, the stateless prefix of
each input another (operator-set).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError, UnavailableError
from tidegate.operate.aggregate import AggregateSpec, Function
from tidegate.operate.kernels.expression import Column, Expr
from tidegate.plan.determinism import require_deterministic
from tidegate.plan.fingerprint import fingerprint, meaning
from tidegate.plan.physical import ARROW, SPARK, AggregatePlan, OrderKey, Plan, Prefix
from tidegate.plan.pushdown import Leaf, push_down
from tidegate.query.aggregate import AggregateCall
from tidegate.query.check import bind_after, key_type
from tidegate.query.name import EVENT_TIME, WINDOW, column, conjuncts, substitute
from tidegate.query.node import (
    Aggregate,
    Branch,
    Filter,
    Node,
    Order,
    Project,
    StreamDef,
    Top,
    data_names,
)
from tidegate.query.typing import UnknownKernel, bind, bind_predicate
from tidegate.query.window import TimeWindow
from tidegate.schema import TIME, type_name

Typer = Callable[[Sequence[str], pa.Schema], Sequence[pa.DataType]]
"""Asks Spark for the types of SQL expressions over a schema."""

NamedExpr = tuple[str, exp.Expression]


def lower(node: Node, typer: Typer | None = None) -> Plan:
    """The physical plan of a query.

    What no kernel evaluates runs in Spark, before the window only, when `typer` is given; without
    it the error of the missing kernel is raised.
    """
    return _Lowering(typer).plan(node)


def spark_sql(expression: exp.Expression) -> str:
    """The Spark SQL of an expression, every name quoted."""
    return expression.sql(dialect="spark", identify=True, comments=False)


@dataclass(frozen=True)
class _Lowering:
    typer: Typer | None

    def plan(self, node: Node) -> Plan:
        base, after = _split(node)
        if isinstance(base, Aggregate):
            return self._aggregate(base, after)
        names = data_names(base)
        if EVENT_TIME in names:
            raise QueryError(
                "SELECT",
                f"the name {EVENT_TIME} belongs to the event time",
                "a column of that name which is not the stream's time",
                "Select the columns and rename it.",
            )
        leaves = push_down(base, self._types)
        prefixes = self._prefixes(leaves, [[(n, lf.columns[n]) for n in names] for lf in leaves])
        fields = [pa.field(n, e.type) for n, e in prefixes[0].outputs]
        schema = pa.schema([pa.field(EVENT_TIME, TIME), *fields])
        streams = _streams(leaves)
        return Plan(streams, prefixes, None, schema, fingerprint(streams, prefixes, None, ()))

    def _aggregate(self, base: Aggregate, after: Sequence[Node]) -> Plan:
        if not isinstance(base.window, TimeWindow):
            raise UnavailableError(f"[{base.window}]", "tuple windows are not available yet")
        leaves = push_down(base.child, self._types)
        calls = [(n, self._coerced(c, leaves[0])) for n, c in base.aggregates]
        arguments: dict[exp.Expression, str] = {}
        for _, call in calls:
            for argument in call.arguments:
                arguments.setdefault(argument, f"x{len(arguments)}")
        shared = [(f"k{i}", e) for i, (_, e) in enumerate(base.keys)]
        shared += [(name, e) for e, name in arguments.items()]
        prefixes = self._prefixes(leaves, [[(n, lf.over(e)) for n, e in shared] for lf in leaves])
        types = {n: e.type for n, e in prefixes[0].outputs}
        functions: list[Function] = []
        for i, (_, call) in enumerate(calls):
            taken = tuple(arguments[a] for a in call.arguments)
            functions.append(call.function(f"a{i}", taken, [types[t] for t in taken]))
        keys = tuple(
            (f"k{i}", key_type(types[f"k{i}"], name)) for i, (name, _) in enumerate(base.keys)
        )
        spec = AggregateSpec(base.window.range_us, base.window.slide_us, keys, tuple(functions))
        tail = _Tail(base)
        for node in after:
            tail.add(node)
        plan = tail.plan(spec, tuple(n for n, _ in base.keys))
        fields = [pa.field(n, TIME) for n in WINDOW]
        schema = pa.schema([*fields, *(pa.field(n, e.type) for n, e in plan.outputs)])
        streams = _streams(leaves)
        mark = fingerprint(streams, prefixes, spec, tail.lines())
        return Plan(streams, prefixes, plan, schema, mark)

    def _coerced(self, call: AggregateCall, leaf: Leaf) -> AggregateCall:
        return call.coerced(self._types(leaf.stream, [leaf.over(a) for a in call.arguments]))

    def _prefixes(
        self, leaves: Sequence[Leaf], outputs: Sequence[Sequence[NamedExpr]]
    ) -> tuple[Prefix, ...]:
        prefixes = tuple(
            self._prefix(i, leaf, named)
            for i, (leaf, named) in enumerate(zip(leaves, outputs, strict=True))
        )
        for other in prefixes[1:]:
            for (name, first), (_, here) in zip(prefixes[0].outputs, other.outputs, strict=True):
                if first.type != here.type:
                    raise QueryError(
                        "UNION ALL",
                        f"{name} must have one type on every side",
                        f"{type_name(first.type)} and {type_name(here.type)}",
                        "CAST one of them.",
                    )
        return prefixes

    def _prefix(self, position: int, leaf: Leaf, named: Sequence[NamedExpr]) -> Prefix:
        stream = leaf.stream
        for part in leaf.where:
            require_deterministic(part, "WHERE")
        for _, part in named:
            require_deterministic(part, "SELECT")
        parts = (*leaf.where, *(e for _, e in named))
        read = {c.name for part in parts for c in part.find_all(exp.Column)}
        texts = [spark_sql(_safe(e)) for e in leaf.where]
        sql_outputs = tuple((n, spark_sql(e)) for n, e in named)
        where, outputs, engine, reason = self._engine(leaf, named, texts, sql_outputs)
        return Prefix(
            stream=position,
            name=stream.name,
            time=stream.time,
            columns=tuple(n for n in stream.schema.names if n in read),
            where=where,
            outputs=outputs,
            engine=engine,
            sql_where=" AND ".join(texts) or None,
            sql_outputs=sql_outputs,
            reason=reason,
        )

    def _engine(
        self,
        leaf: Leaf,
        named: Sequence[NamedExpr],
        texts: Sequence[str],
        sql_outputs: Sequence[tuple[str, str]],
    ) -> tuple[tuple[Expr, ...], tuple[tuple[str, Expr], ...], str, str | None]:
        raw = _raw_types(leaf.stream)
        try:
            where = tuple(bind_predicate(e, raw, "WHERE") for e in leaf.where)
            outputs = tuple((n, bind(e, raw, "SELECT")) for n, e in named)
            return where, outputs, ARROW, None
        except UnknownKernel as missing:
            if self.typer is None:
                raise
            reason = missing.requirement
        types = self.typer([*(t for _, t in sql_outputs), *texts], leaf.stream.schema)
        for text, type_ in zip(texts, types[len(sql_outputs) :], strict=True):
            if not pa.types.is_boolean(type_):
                raise QueryError("WHERE", f"{text} must be true or false", type_name(type_))
        columns = tuple((n, Column(n, t)) for (n, _), t in zip(sql_outputs, types, strict=False))
        return (), columns, SPARK, reason

    def _types(
        self, stream: StreamDef, expressions: Sequence[exp.Expression]
    ) -> Sequence[pa.DataType]:
        raw = _raw_types(stream)
        try:
            return [bind(e, raw, "SELECT").type for e in expressions]
        except UnknownKernel:
            if self.typer is None:
                raise
            return self.typer([spark_sql(e) for e in expressions], stream.schema)


@dataclass
class _Tail:
    """The stateless nodes above the aggregate, gathered from below over its physical columns."""

    base: Aggregate
    columns: dict[str, exp.Expression] = field(init=False)
    having: list[exp.Expression] = field(default_factory=list)
    order: tuple[Order, ...] = ()
    limit: int | None = None
    ordered: bool = False

    def __post_init__(self) -> None:
        self.columns = {n: column(n) for n in WINDOW}
        self.columns |= {n: column(f"k{i}") for i, (n, _) in enumerate(self.base.keys)}
        self.columns |= {n: column(f"a{i}") for i, (n, _) in enumerate(self.base.aggregates)}

    def add(self, node: Node) -> None:
        """Take the next node upwards."""
        if isinstance(node, Filter | Branch):
            if self.limit is not None:
                raise UnavailableError("HAVING", "a condition after LIMIT is not available yet")
            self.having.extend(conjuncts(substitute(node.predicate, self.columns)))
        elif isinstance(node, Project):
            held = {n: self.columns[n] for n in WINDOW}
            self.columns = held | {n: substitute(e, self.columns) for n, e in node.columns}
        elif isinstance(node, Top):
            if self.ordered:
                raise UnavailableError("ORDER BY", "ordering a window twice is not available yet")
            self.order = tuple(
                Order(substitute(o.expression, self.columns), o.descending, o.nulls_lead)
                for o in node.order
            )
            self.limit, self.ordered = node.limit, True

    def plan(self, spec: AggregateSpec, key_names: tuple[str, ...]) -> AggregatePlan:
        """Bind what was gathered to kernels."""
        types = dict.fromkeys(WINDOW, TIME) | dict(spec.keys)
        types |= {f.name: f.result for f in spec.functions}
        for part in (*self.having, *self.columns.values(), *(o.expression for o in self.order)):
            require_deterministic(part, "SELECT")
        return AggregatePlan(
            spec=spec,
            key_names=key_names,
            having=tuple(bind_after(e, types, "HAVING", predicate=True) for e in self.having),
            outputs=tuple(
                (n, bind_after(e, types, "SELECT"))
                for n, e in self.columns.items()
                if n not in WINDOW
            ),
            order=tuple(
                OrderKey(bind_after(o.expression, types, "ORDER BY"), o.descending, o.nulls_lead)
                for o in self.order
            ),
            limit=self.limit,
        )

    def lines(self) -> list[str]:
        """What follows the aggregate, for the fingerprint."""
        lines = [f"having {meaning(spark_sql(e))}" for e in self.having]
        lines += [
            f"order {meaning(spark_sql(o.expression))} {o.descending} {o.nulls_lead}"
            for o in self.order
        ]
        lines += [f"output {n!r} {meaning(spark_sql(e))}" for n, e in self.columns.items()]
        return [*lines, f"limit {self.limit}"]


def _split(node: Node) -> tuple[Node, list[Node]]:
    """The stateful node, or the whole of a stateless query, and the nodes above it from below."""
    above: list[Node] = []
    while node.windowed and isinstance(node, Filter | Branch | Project | Top):
        above.append(node)
        node = node.child
    return node, above[::-1]


def _streams(leaves: Sequence[Leaf]) -> tuple[StreamDef, ...]:
    """The streams by position; one that is there several times must be the same each time."""
    known: dict[str, StreamDef] = {}
    for leaf in leaves:
        stream = leaf.stream
        if known.setdefault(stream.name, stream) != stream:
            raise QueryError(
                f"stream {stream.name}",
                "a name must stand for one stream",
                "two that differ",
                "Give one of them another name.",
            )
    return tuple(leaf.stream for leaf in leaves)


def _raw_types(stream: StreamDef) -> dict[str, pa.DataType]:
    return {f.name: f.type for f in stream.schema}


def _safe(condition: exp.Expression) -> exp.Expression:
    """A condition that AND can stand beside."""
    return exp.Paren(this=condition.copy()) if isinstance(condition, exp.Or) else condition
