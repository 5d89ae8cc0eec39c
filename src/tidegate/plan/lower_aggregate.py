"""Lowering of aggregates: an aggregate node and the stateless nodes above it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.expression.tree import Column
from tidegate.operate.aggregate.balanced.balancing import Balancing
from tidegate.operate.aggregate.balanced.operator import MergeBalanced
from tidegate.operate.aggregate.bounded.operator import BoundedWindows
from tidegate.operate.aggregate.figures import ToldColumns
from tidegate.operate.aggregate.merging import MergeWindows
from tidegate.operate.aggregate.operator import INSTANCE, MAP, WindowAggregate
from tidegate.operate.aggregate.pane import AggregateSpec, Function
from tidegate.operate.aggregate.user import USER, Aggregator
from tidegate.operate.operator import Operator
from tidegate.operate.port import Port
from tidegate.operate.tuple_window.operator import TupleAggregate
from tidegate.operate.tuple_window.window import TupleSpec
from tidegate.plan.balance import balanced_of, exact_places
from tidegate.plan.bound import bound_columns, bound_texts, bounded_of
from tidegate.plan.cut import Unit
from tidegate.plan.dependence import Origin, state_lines
from tidegate.plan.fingerprint import function_lines
from tidegate.plan.lowered import Context, Lowered
from tidegate.plan.physical import Prefix
from tidegate.plan.prefix import Prefixing
from tidegate.plan.pushdown import Leaf
from tidegate.plan.recorded import Record, input_lines, prefix_texts, typed_texts
from tidegate.plan.shed import numbered, shed_columns, shedding_of, sieved
from tidegate.plan.stored_name import stored_names
from tidegate.plan.window_port import process_ports, window_ports
from tidegate.query.aggregate import AggregateCall
from tidegate.query.check import key_type
from tidegate.query.instant import event_offset
from tidegate.query.name import WINDOW, column
from tidegate.query.node import Aggregate
from tidegate.query.option import KEPT
from tidegate.query.window import TimeWindow, TupleWindow
from tidegate.query.window_process import WindowProcess
from tidegate.route.auto import Auto
from tidegate.route.hash import BY_HASH, Hash
from tidegate.route.partitioner import Partitioner
from tidegate.route.registry import partitioner_of, text_of
from tidegate.schema import type_name


def lower_aggregate(unit: Unit, context: Context) -> Iterator[Lowered]:
    """The subquery of an aggregate over windows of time or of tuples.

    Where the partitioner splits keys, and where there is an error bound, an aggregate over time is
    two: one in part, one that merges.
    """
    base, front = unit.base, context.front
    assert isinstance(base, Aggregate)
    leaves = front.leaves(base.child)
    calls = _coerced([c for _, c in base.aggregates], leaves[0], front)
    arguments: dict[exp.Expression, str] = {}
    for call in calls:
        for argument in call.arguments:
            arguments.setdefault(argument, f"x{len(arguments)}")
    window, kept = base.window, context.kept(WindowAggregate.kind)
    shared = [(f"k{i}", e) for i, (_, e) in enumerate(base.keys)]

    def made() -> tuple[Prefix, ...]:
        named = shared + [(name, e) for e, name in arguments.items()]
        return front.prefixes(leaves, [[(n, lf.over(e)) for n, e in named] for lf in leaves])

    prefixes = made()
    if kept is not None and isinstance(window, TupleWindow):
        held = typed_texts(prefixes, prefix_texts(prefixes))
        stored = stored_names({n: held[n] for n in arguments.values()}, kept, "x")
        arguments = {e: stored[n] for e, n in arguments.items()}
        prefixes = made()
    types = {n: e.type for n, e in prefixes[0].outputs}
    texts = prefix_texts(prefixes)
    functions: list[Function] = []
    for i, call in enumerate(calls):
        taken = tuple(arguments[a] for a in call.arguments)
        functions.append(call.function(f"a{i}", taken, [types[t] for t in taken]))
    texts |= {f.name: _call(f, texts) for f in functions}
    keys = tuple((f"k{i}", key_type(types[f"k{i}"], n)) for i, (n, _) in enumerate(base.keys))
    names = tuple(n for n, _ in base.keys)
    lines = [f"key {name} {type_}" for name, type_ in keys] + function_lines(functions)
    columns = dict(keys) | {f.name: f.result for f in functions}
    columns |= bound_columns(base, functions)
    balancing: Balancing | None = None
    balanced: tuple[Function, ...] = ()
    if base.balance is not None:
        balancing, balanced = balanced_of(base, functions, texts)
    bounding = None if base.bound is None else bounded_of(base, functions, texts)
    shedding = None if base.shed is None else shedding_of(base, base.shed, functions)
    if isinstance(base, WindowProcess):
        lines += [f"row {name} {type_}" for name, type_ in base.process.output]
        ports, after, shown = process_ports(unit, base, dict(keys), functions[0].name, texts)
    elif base.shed is None or shedding is None:
        known = texts | bound_texts(functions, texts)
        folded = balancing is not None and not balancing.holds
        ends = exact_places(base) if folded else None
        ports, after, shown = window_ports(unit, base, columns, known, ends)
        if bounding is not None and not bounding.together:
            computed = dict(keys) | bounding.types
            ports, after, _ = window_ports(unit, base, computed, known, bounding.places(base))
    else:
        lines.append(f"shed {base.shed}")
        prefixes = sieved(prefixes, base, base.shed)
        kept_as = {KEPT: column(KEPT)}
        _, _, shown = window_ports(unit, base, columns | {KEPT: pa.float64()}, texts, kept_as)
        computed = dict(keys) | shedding.types
        ports, after, _ = window_ports(unit, base, computed, texts, shedding.places)
    inputs = [line for leaf in leaves for line in input_lines(leaf)]
    clauses = [str(asked).lower() for asked in (base.shed, base.bound) if asked is not None]
    origin = Origin(inputs, clauses, texts)
    partitioner = context.choices.partitioner
    if base.partitioner is not None:
        partitioner = partitioner_of(base.partitioner, "partitioner")
    if isinstance(window, TupleWindow):
        _check_together(partitioner, window)
        stored = typed_texts(prefixes, texts)
        tuples = TupleSpec(
            rows=window.rows,
            slide=window.slide,
            keys=keys,
            arguments=tuple((n, types[n]) for n in arguments.values()),
            functions=tuple(functions),
        )
        lines = [f"rows {window.rows} {window.slide}", *lines, *after]
        counting = TupleAggregate(tuples, names)
        yield Lowered(
            leaves=leaves,
            prefixes=prefixes,
            operator=counting,
            ports=ports,
            lines=tuple(lines),
            record=Record(
                state=state_lines(counting, origin),
                columns={n: stored[n] for n in arguments.values()},
                after=shown,
            ),
        )
        return
    _check_windows(window, context.choices.max_windows)
    states = tuple(functions)
    if bounding is not None:
        states = bounding.functions
        prefixes = numbered(prefixes) if bounding.answering.sampled else prefixes
        lines += [f"bound {base.bound}", *function_lines(states)]
    if shedding is not None:
        states = shedding.functions
    if balancing is not None:
        states = balanced
        prefixes = numbered(prefixes) if balancing.holds else prefixes
        trimmed = ", ".join(answer.text for answer in balancing.held) or "nothing"
        lines.append(f"balance {base.balance} of {trimmed}")
        clauses.append(f"{str(base.balance).lower()} of {trimmed}")
    held = {f.name: _held(f, texts) for f in states}
    stored = stored_names(held, kept, "a", reuse=True)
    distinct = {stored[f.name]: replace(f, name=stored[f.name]) for f in states}
    spec = AggregateSpec(window.range_us, window.slide_us, keys, tuple(distinct.values()))
    told: ToldColumns | None = shed_columns(base, shedding)
    together = bounding is not None and bounding.together
    told = bounding.told if bounding is not None and not together else told
    told = None if told is None else told.renamed(stored)
    merging: Operator = MergeWindows(spec, names, told)
    if balancing is not None and balancing.holds:
        balancing = balancing.renamed(stored)
        merging = MergeBalanced(spec, names, balancing)
    elif bounding is not None and together:
        merging = BoundedWindows(spec, names, bounding.answering.renamed(stored))
    else:
        ports = tuple(port.renamed(stored) for port in ports)
    lines = [f"window {window.range_us} {window.slide_us}", *lines]
    parts = [part for function in states for part in function.parts]
    _check_merges(partitioner, parts)
    folds = context.choices.partial or _folds(parts, partitioner.splits_keys)
    by_auto = isinstance(partitioner, Auto)
    partitioner = _settled(partitioner, parts, folds)
    lines += [] if isinstance(partitioner, Hash) else [f"partitioner {text_of(partitioner)}"]
    split = partitioner.splits_keys or together
    holds = balancing is not None and balancing.holds
    finishes = isinstance(partitioner, Auto) and not together and not holds
    operator = WindowAggregate(
        spec,
        names,
        partitioner,
        partly=split,
        folds=folds,
        by_auto=by_auto,
        finishes=finishes,
        told=None if split else told,
        balancing=balancing,
    )
    handed = _part_ports(spec, event_offset(base), finishes)
    yield Lowered(
        leaves=leaves,
        prefixes=prefixes,
        operator=operator,
        ports=handed if split else ports,
        lines=tuple(lines) if split else (*lines, *after),
        record=Record(
            state=state_lines(operator, origin),
            columns={stored[name]: text for name, text in held.items()},
            after=((),) * len(handed) if split else shown,
        ),
    )
    if split:
        merged = _merging(merging, context, len(handed), ports, after)
        yield replace(merged, record=Record(after=shown))


def _folds(functions: Sequence[Function], split: bool) -> str:
    """Who folds, where nobody has said: instances, where keys are split and folding saves little.

    So it is where a state keeps all values, and where the work is that of a user's own code.
    """
    costly = any(f.definition.holistic or f.definition.by_user for f in functions)
    return INSTANCE if split and costly else MAP


def _settled(partitioner: Partitioner, functions: Sequence[Function], folds: str) -> Partitioner:
    """Who places units, where `auto` has nothing to choose.

    Where map tasks fold, a key is one unit however many tuples it has, and as much work as others,
    unless its state has a value for each of them: then `hash` is even, and merges nothing.
    """
    if not isinstance(partitioner, Auto) or folds == INSTANCE:
        return partitioner
    return partitioner if any(f.definition.holistic for f in functions) else BY_HASH


def _check_together(partitioner: Partitioner, window: TupleWindow) -> None:
    """Refuse to split keys where the tuples of one are counted in their order.

    `auto` has them go by their hash.
    """
    if partitioner.splits_keys and not isinstance(partitioner, Auto):
        raise QueryError(
            f"partitioner {text_of(partitioner)}",
            "may split the tuples of a key only over windows of time, whose parts can be merged",
            f"[{window}]",
            f"Use {Hash.name}, or write a window of time: [RANGE 1 MINUTE].",
        )


def _check_merges(partitioner: Partitioner, functions: Sequence[Function]) -> None:
    """Refuse to split keys where an aggregate of the user's has no way back."""
    users = [f.parameters[0] for f in functions if f.definition is USER]
    for user in users if partitioner.splits_keys else ():
        if type(user).merge is Aggregator.merge:
            raise QueryError(
                f"aggregate {type(user).__qualname__}",
                f"needs a method merge where {text_of(partitioner)} splits keys",
                "none",
                f"Write one, or use {Hash.name}.",
            )


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


def _part_ports(spec: AggregateSpec, offset_us: int, finishes: bool) -> tuple[Port, ...]:
    """The states of windows as rows, for the subquery that merges them.

    Where the aggregate finishes some windows itself, also their rows.
    """
    schemas = [spec.window_schema, *([spec.result_schema] if finishes else [])]
    return tuple(
        Port(
            schema=schema,
            outputs=tuple((f.name, Column(f.name, f.type)) for f in schema if f.name not in WINDOW),
            time=WINDOW[1],
            offset_us=offset_us,
        )
        for schema in schemas
    )


def _merging(
    operator: Operator,
    context: Context,
    inputs: int,
    ports: tuple[Port, ...],
    lines: list[str],
) -> Lowered:
    """The subquery that finishes windows of the one before it."""
    origins = [context.newest(port) for port in range(inputs)]
    columns = [{name: column(name) for name in origin.schema.names} for origin in origins]
    leaves = tuple(Leaf(o, (), named) for o, named in zip(origins, columns, strict=True))
    prefixes = [context.front.prefixes((lf,), [list(lf.columns.items())]) for lf in leaves]
    return Lowered(
        leaves=leaves,
        prefixes=tuple(prefix for of_leaf in prefixes for prefix in of_leaf),
        operator=operator,
        ports=ports,
        lines=tuple(lines),
        record=Record(),
    )


def _call(function: Function, texts: Mapping[str, str]) -> str:
    """A function as a record has it, by its name in SQL where it has one."""
    definition, given = function.definition, [texts[a] for a in function.arguments]
    text = definition.written(given, function.parameters)
    if definition.form is not None or not definition.sql:
        return text
    return definition.sql[0] + text.removeprefix(function.title)


def _held(function: Function, texts: Mapping[str, str]) -> str:
    """The state of a function as a record has it; of a user's own also how it is stored."""
    inside = function.definition.inside(function.parameters)
    if inside is not None:
        parts = ", ".join(_held(part, texts) for part in inside) or "COUNT(*)"
        return f"what represents groups for {parts}"
    stored = ""
    if function.definition.by_user:
        stored = "".join(f", {part} {type_name(type_)}" for part, type_ in function.family.state)
    return f"{_call(function, texts)}{_types(function)}{stored}"


def _types(function: Function) -> str:
    """What tells two states of functions apart that are written alike."""
    return f" of {', '.join(map(type_name, function.types))}" if function.types else ""


def _coerced(calls: Sequence[AggregateCall], leaf: Leaf, front: Prefixing) -> list[AggregateCall]:
    """The calls with Spark's casts; the types of all arguments are asked for at once."""
    arguments = [leaf.over(a) for call in calls for a in call.arguments]
    types = iter(front.types(leaf.origin, arguments))
    made = [call.coerced([next(types) for _ in call.arguments]) for call in calls]
    return [
        call.guarded(lambda argument: front.can_fail(leaf.origin, leaf.over(argument)))
        for call in made
    ]
