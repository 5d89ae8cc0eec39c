"""Lowering: logical nodes become the physical plan that tasks run, in the StreamCloud way.

The one stateful operator and the stateless work after it are one subquery, the stateless prefix of
each input another (operator-set).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError, UnavailableError
from tidegate.operate.aggregate import AggregateSpec, Function
from tidegate.plan.determinism import require_deterministic
from tidegate.plan.fingerprint import fingerprint, meaning
from tidegate.plan.lower_join import lower_join
from tidegate.plan.method import JoinOptions
from tidegate.plan.physical import AggregatePlan, OrderKey, Plan
from tidegate.plan.prefix import Prefixing, Typer, spark_sql
from tidegate.plan.pushdown import Leaf, push_down, streams_of
from tidegate.plan.sample import RawRows
from tidegate.query.aggregate import AggregateCall
from tidegate.query.check import bind_after, key_type
from tidegate.query.join import has_join
from tidegate.query.name import EVENT_TIME, WINDOW, column, conjuncts, substitute
from tidegate.query.node import (
    Aggregate,
    Branch,
    Filter,
    Node,
    Order,
    Project,
    Top,
    data_names,
)
from tidegate.query.window import TimeWindow
from tidegate.schema import TIME


def lower(
    node: Node,
    typer: Typer | None = None,
    join: JoinOptions | None = None,
    rows: RawRows | None = None,
) -> Plan:
    """The physical plan of a query.

    What no kernel evaluates runs in Spark, before the window only, when `typer` is given; without
    it the error of the missing kernel is raised. `join` is how the user wants joins to be done;
    `rows` gives the first rows of a stream, from which the best way is estimated.
    """
    if has_join(node):
        return lower_join(node, Prefixing(typer), join or JoinOptions(), rows)
    return _Lowering(Prefixing(typer)).plan(node)


@dataclass(frozen=True)
class _Lowering:
    front: Prefixing

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
        leaves = push_down(base, self.front.types)
        outputs = [[(n, lf.columns[n]) for n in names] for lf in leaves]
        prefixes = self.front.prefixes(leaves, outputs)
        fields = [pa.field(n, e.type) for n, e in prefixes[0].outputs]
        schema = pa.schema([pa.field(EVENT_TIME, TIME), *fields])
        streams = streams_of(leaves)
        return Plan(streams, prefixes, None, schema, fingerprint(streams, prefixes, None, ()))

    def _aggregate(self, base: Aggregate, after: Sequence[Node]) -> Plan:
        if not isinstance(base.window, TimeWindow):
            raise UnavailableError(
                f"[{base.window}]",
                "tuple windows are not available yet",
                None,
                "Use a window of time, as [RANGE 10 SECONDS].",
            )
        leaves = push_down(base.child, self.front.types)
        calls = [(n, self._coerced(c, leaves[0])) for n, c in base.aggregates]
        arguments: dict[exp.Expression, str] = {}
        for _, call in calls:
            for argument in call.arguments:
                arguments.setdefault(argument, f"x{len(arguments)}")
        shared = [(f"k{i}", e) for i, (_, e) in enumerate(base.keys)]
        shared += [(name, e) for e, name in arguments.items()]
        outputs = [[(n, lf.over(e)) for n, e in shared] for lf in leaves]
        prefixes = self.front.prefixes(leaves, outputs)
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
        streams = streams_of(leaves)
        mark = fingerprint(streams, prefixes, spec, tail.lines())
        return Plan(streams, prefixes, plan, schema, mark)

    def _coerced(self, call: AggregateCall, leaf: Leaf) -> AggregateCall:
        return call.coerced(self.front.types(leaf.stream, [leaf.over(a) for a in call.arguments]))


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
