"""Lowering of aggregates: an aggregate node and the stateless nodes above it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.expression.tree import Column
from tidegate.operate.aggregate.operator import MergeWindows, WindowAggregate
from tidegate.operate.aggregate.pane import AggregateSpec, Function
from tidegate.operate.port import Port
from tidegate.operate.tuple_window.operator import TupleAggregate
from tidegate.operate.tuple_window.window import TupleSpec
from tidegate.plan.cut import Unit
from tidegate.plan.fingerprint import function_lines
from tidegate.plan.lowered import Context, Lowered
from tidegate.plan.prefix import Prefixing
from tidegate.plan.pushdown import Leaf
from tidegate.plan.window_port import window_ports
from tidegate.query.aggregate import AggregateCall
from tidegate.query.check import key_type
from tidegate.query.instant import event_offset
from tidegate.query.name import WINDOW, column
from tidegate.query.node import Aggregate
from tidegate.query.window import TimeWindow, TupleWindow
from tidegate.route.hash import Hash


def lower_aggregate(unit: Unit, context: Context) -> Iterator[Lowered]:
    """The subquery of an aggregate over windows of time or of tuples.

    Where the partitioner splits keys, an aggregate over time is two: one in part, one that merges.
    """
    base, front = unit.base, context.front
    assert isinstance(base, Aggregate)
    leaves = front.leaves(base.child)
    calls = _coerced([c for _, c in base.aggregates], leaves[0], front)
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
    lines = [f"key {name} {type_}" for name, type_ in keys] + function_lines(functions)
    columns = dict(keys) | {f.name: f.result for f in functions}
    ports, after = window_ports(unit, base, columns)
    window = base.window
    if isinstance(window, TupleWindow):
        kept = tuple((n, types[n]) for n in arguments.values())
        tuples = TupleSpec(window.rows, window.slide, keys, kept, tuple(functions))
        lines = [f"rows {window.rows} {window.slide}", *lines, *after]
        yield Lowered(
            leaves=leaves,
            prefixes=prefixes,
            operator=TupleAggregate(tuples, names),
            ports=ports,
            lines=tuple(lines),
        )
        return
    _check_windows(window, context.choices.max_windows)
    spec = AggregateSpec(window.range_us, window.slide_us, keys, tuple(functions))
    partitioner = context.choices.partitioner
    lines = [f"window {window.range_us} {window.slide_us}", *lines]
    lines += [] if isinstance(partitioner, Hash) else [f"partitioner {partitioner.name}"]
    split = partitioner.splits_keys
    yield Lowered(
        leaves=leaves,
        prefixes=prefixes,
        operator=WindowAggregate(spec, names, partitioner, partly=split),
        ports=(_part_port(spec, event_offset(base)),) if split else ports,
        lines=tuple(lines) if split else (*lines, *after),
    )
    if split:
        yield _merging(spec, names, context, ports, after)


def _check_windows(window: TimeWindow, most: int | None) -> None:
    """Refuse a slide so short that every tuple makes more rows than anybody can have meant."""
    count = -(-window.range_us // window.slide_us)
    if most is not None and count > most:
        raise QueryError(
            f"window {window}",
            f"a tuple must be in at most {most:,} windows",
            f"{count:,}",
            "Make SLIDE longer, or ask for so many: with --max-windows-per-tuple "
            f"{count}, in Python with max_windows_per_tuple={count}.",
        )


def _part_port(spec: AggregateSpec, offset_us: int) -> Port:
    """The states of windows as rows, for the subquery that merges them."""
    schema = spec.window_schema
    outputs = tuple((f.name, Column(f.name, f.type)) for f in schema if f.name not in WINDOW)
    return Port(schema=schema, outputs=outputs, time=WINDOW[1], offset_us=offset_us)


def _merging(
    spec: AggregateSpec,
    names: tuple[str, ...],
    context: Context,
    ports: tuple[Port, ...],
    lines: list[str],
) -> Lowered:
    """The subquery that finishes windows of the one before it."""
    parts = context.newest()
    columns = {name: column(name) for name in parts.schema.names}
    leaf = Leaf(parts, (), columns)
    return Lowered(
        leaves=(leaf,),
        prefixes=context.front.prefixes((leaf,), [list(columns.items())]),
        operator=MergeWindows(spec, names),
        ports=ports,
        lines=tuple(lines),
    )


def _coerced(calls: Sequence[AggregateCall], leaf: Leaf, front: Prefixing) -> list[AggregateCall]:
    """The calls with Spark's casts; the types of all arguments are asked for at once."""
    arguments = [leaf.over(a) for call in calls for a in call.arguments]
    types = iter(front.types(leaf.origin, arguments))
    return [call.coerced([next(types) for _ in call.arguments]) for call in calls]
