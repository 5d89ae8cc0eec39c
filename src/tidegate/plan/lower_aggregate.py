"""Lowering of aggregates: an aggregate node and the stateless nodes above it."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from tidegate.operate.aggregate.pane import AggregateSpec, Function
from tidegate.operate.tuple_window.window import TupleSpec
from tidegate.plan.cut import Unit
from tidegate.plan.determinism import require_deterministic
from tidegate.plan.fingerprint import function_lines, meaning
from tidegate.plan.fold import fold
from tidegate.plan.lowered import Lowered, output_lines
from tidegate.plan.physical import AggregatePlan, OrderKey, Port, TuplePlan
from tidegate.plan.prefix import Prefixing, spark_sql
from tidegate.plan.pushdown import Leaf
from tidegate.plan.suffix import Suffix
from tidegate.query.aggregate import AggregateCall
from tidegate.query.check import bind_after, key_type
from tidegate.query.instant import event_offset
from tidegate.query.name import WINDOW, column
from tidegate.query.node import Aggregate, Node
from tidegate.query.window import TimeWindow
from tidegate.schema import TIME


def lower_aggregate(unit: Unit, front: Prefixing) -> Lowered:
    """The subquery of an aggregate over windows of time or of tuples."""
    base = unit.base
    assert isinstance(base, Aggregate)
    leaves = front.leaves(base.child)
    calls = [_coerced(c, leaves[0], front) for _, c in base.aggregates]
    arguments: dict[exp.Expression, str] = {}
    for call in calls:
        for argument in call.arguments:
            arguments.setdefault(argument, f"x{len(arguments)}")
    shared = [(f"k{i}", e) for i, (_, e) in enumerate(base.keys)]
    shared += [(name, e) for e, name in arguments.items()]
    prefixes = front.prefixes(leaves, [[(n, lf.over(e)) for n, e in shared] for lf in leaves])
    types = {n: e.type for n, e in prefixes[0].outputs}
    functions: list[Function] = []
    for i, call in enumerate(calls):
        taken = tuple(arguments[a] for a in call.arguments)
        functions.append(call.function(f"a{i}", taken, [types[t] for t in taken]))
    keys = tuple((f"k{i}", key_type(types[f"k{i}"], n)) for i, (n, _) in enumerate(base.keys))
    names = tuple(n for n, _ in base.keys)
    window = base.window
    operator: AggregatePlan | TuplePlan
    if isinstance(window, TimeWindow):
        spec = AggregateSpec(window.range_us, window.slide_us, keys, tuple(functions))
        operator = AggregatePlan(spec, names)
        lines = [f"window {window.range_us} {window.slide_us}"]
    else:
        kept = tuple((n, types[n]) for n in arguments.values())
        tuples = TupleSpec(window.rows, window.slide, keys, kept, tuple(functions))
        operator = TuplePlan(tuples, names)
        lines = [f"rows {window.rows} {window.slide}"]
    lines += [f"key {name} {type_}" for name, type_ in keys]
    lines += function_lines(functions)
    known = dict.fromkeys(WINDOW, TIME) | dict(keys) | {f.name: f.result for f in functions}
    ports = []
    for top in unit.tops:
        above = _above(base, top.node)
        ports.append(_port(above, known, event_offset(base)))
        lines += _lines(above)
    return Lowered(leaves, prefixes, operator, tuple(ports), tuple(lines))


def _coerced(call: AggregateCall, leaf: Leaf, front: Prefixing) -> AggregateCall:
    return call.coerced(front.types(leaf.origin, [leaf.over(a) for a in call.arguments]))


def _above(base: Aggregate, top: Node) -> Suffix:
    columns: dict[str, exp.Expression] = {n: column(n) for n in WINDOW}
    columns |= {n: column(f"k{i}") for i, (n, _) in enumerate(base.keys)}
    columns |= {n: column(f"a{i}") for i, (n, _) in enumerate(base.aggregates)}
    above = Suffix(columns, WINDOW)
    above.extend(top, base)
    return above


def _port(above: Suffix, types: dict[str, pa.DataType], offset_us: int) -> Port:
    """What was gathered, bound to kernels."""
    for part in (*above.where, *above.columns.values(), *(o.expression for o in above.order)):
        require_deterministic(part, "SELECT")
    outputs = tuple(
        (n, fold(bind_after(e, types, "SELECT")))
        for n, e in above.columns.items()
        if n not in WINDOW
    )
    fields = [pa.field(n, TIME) for n in WINDOW]
    return Port(
        schema=pa.schema([*fields, *(pa.field(n, e.type) for n, e in outputs)]),
        outputs=outputs,
        where=tuple(fold(bind_after(e, types, "HAVING", predicate=True)) for e in above.where),
        order=tuple(
            OrderKey(fold(bind_after(o.expression, types, "ORDER BY")), o.descending, o.nulls_lead)
            for o in above.order
        ),
        limit=above.limit,
        time=WINDOW[1],
        offset_us=offset_us,
    )


def _lines(above: Suffix) -> list[str]:
    """What follows the aggregate, for the fingerprint."""
    lines = [f"having {meaning(spark_sql(e))}" for e in above.where]
    lines += [
        f"order {meaning(spark_sql(o.expression))} {o.descending} {o.nulls_lead}"
        for o in above.order
    ]
    return [*lines, *output_lines(above.columns.items()), f"limit {above.limit}"]
