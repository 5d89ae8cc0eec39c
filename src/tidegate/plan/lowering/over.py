"""Lowers functions OVER the tuples of a key and the stateless nodes above them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidegate.operate.over.column import FrameColumn, LagColumn, OverColumn, RankColumn
from tidegate.operate.over.frame import Frame, RangeFrame, RowsFrame
from tidegate.operate.over.lead import LeadColumn, LeadTuples
from tidegate.operate.over.operator import OverTuples
from tidegate.operate.over.value_list import LagValueColumn, NthColumn
from tidegate.operate.tuple_rows import OWN_TIME
from tidegate.plan.compatibility.dependence import Origin, state_lines
from tidegate.plan.compatibility.query_record import Record, input_lines, prefix_texts, typed_texts
from tidegate.plan.cut import Unit
from tidegate.plan.lowering.rule import Context, Lowered
from tidegate.plan.physical import Prefix
from tidegate.plan.pushdown import Leaf
from tidegate.plan.reach import reach_us
from tidegate.plan.tuple_input import KeyedInput
from tidegate.plan.tuple_port import tuple_ports
from tidegate.query.check import key_type
from tidegate.query.name import EVENT_TIME, column
from tidegate.query.node.over import ROWS, FrameCall, FrameSpan, LagCall, NthCall, Over, RankCall
from tidegate.schema import TIME

Types = Sequence[pa.DataType]


def lower_over(unit: Unit, context: Context) -> Iterator[Lowered]:
    """The subquery of OVER: its inputs hold keys, arguments, and the columns that are read."""
    asked = _Asked.of(unit, context)
    operator = OverTuples(
        keys=asked.keys,
        arguments=asked.arguments,
        columns=tuple(_COLUMNS[type(call[0])](*call) for call in asked.calls),
    )
    yield asked.lowered(unit, operator)


def lower_lead(unit: Unit, context: Context) -> Iterator[Lowered]:
    """The subquery of LEAD: tuples wait with all of their columns."""
    asked = _Asked.of(unit, context)
    columns = []
    for call, name, taken, types in asked.calls:
        default = taken[1] if len(taken) > 1 else None
        how = call.offset, default, call.ignore_nulls
        columns.append(LeadColumn(name, types[0], taken[0], *how))
    keys = {name for name, _ in asked.keys}
    held = tuple((n, e.type) for n, e in asked.prefixes[0].outputs if n not in keys)
    operator = LeadTuples(asked.keys, held, tuple(columns), reach_us(unit.base))
    yield asked.lowered(unit, operator, waits=True)


@dataclass(frozen=True)
class _Asked:
    """The calls of a node: each with the name of its column, its arguments, and their types."""

    base: Over
    inputs: KeyedInput
    leaves: tuple[Leaf, ...]
    prefixes: tuple[Prefix, ...]
    keys: tuple[tuple[str, pa.DataType], ...]
    arguments: tuple[tuple[str, pa.DataType], ...]
    calls: Sequence[tuple[Any, str, tuple[str, ...], Types]]

    @staticmethod
    def of(unit: Unit, context: Context) -> _Asked:
        base, front = unit.base, context.front
        assert isinstance(base, Over)
        leaves = front.leaves(base.child)
        asked = [leaves[0].over(a) for _, call in base.calls for a in call.arguments]
        found = iter(front.types(leaves[0], asked))
        calls = [call.coerced([next(found) for _ in call.arguments]) for _, call in base.calls]
        given = dict.fromkeys(argument for call in calls for argument in call.arguments)
        arguments = {argument: f"x{i}" for i, argument in enumerate(given)}
        keys = [f"k{i}" for i in range(len(base.keys))]
        own = dict(zip(keys, base.keys, strict=True)) | {n: a for a, n in arguments.items()}
        made = {name: f"o{i}" for i, (name, _) in enumerate(base.calls)}
        inputs = KeyedInput.of(unit, base.names, own, made)
        prefixes = front.prefixes(leaves, [inputs.outputs(leaf) for leaf in leaves])
        types = inputs.types(prefixes[0])
        taken = [tuple(arguments[a] for a in call.arguments) for call in calls]
        return _Asked(
            base=base,
            inputs=inputs,
            leaves=leaves,
            prefixes=prefixes,
            keys=tuple((k, key_type(types[k], k, "PARTITION BY")) for k in keys),
            arguments=tuple((name, types[name]) for name in arguments.values()),
            calls=[
                (call, name, names, [types[n] for n in names])
                for call, name, names in zip(calls, made.values(), taken, strict=True)
            ],
        )

    def lowered(
        self, unit: Unit, operator: OverTuples | LeadTuples, waits: bool = False
    ) -> Lowered:
        """The subquery; rows that wait show their own time, and are stored with all columns."""
        types = self.inputs.types(self.prefixes[0]) | {OWN_TIME: TIME}
        types |= {column.name: column.result for column in operator.columns}
        shown = dict(self.inputs.columns)
        if waits and not self.base.child.own_time:
            shown[EVENT_TIME] = column(OWN_TIME)
        above = tuple_ports(unit, shown, types)
        texts = typed_texts(self.prefixes, prefix_texts(self.prefixes))
        said = [call.over(self.leaves[0].over).text for call, *_ in self.calls]
        keys = [name for name, _ in self.keys]
        origin = Origin(
            inputs=[line for leaf in self.leaves for line in input_lines(leaf)],
            clauses=[
                *(f"partition by {texts[k]}" for k in keys),
                *(f"over {text}" for text in said),
            ],
            texts=texts,
        )
        held = [name for name, _ in self.prefixes[0].outputs] if waits else []
        return Lowered(
            leaves=self.leaves,
            prefixes=self.prefixes,
            operator=operator,
            ports=above.ports,
            lines=(*(f"over {keys} {text}" for text in said), *above.lines),
            record=Record(
                state=state_lines(operator, origin),
                columns={name: texts[name] for name in held},
                after=above.shown,
            ),
        )


def _frame(call: FrameCall, name: str, columns: tuple[str, ...], types: Types) -> OverColumn:
    return FrameColumn(call.call.function(name, columns, types), _span(call.frame))


def _nth(call: NthCall, name: str, columns: tuple[str, ...], types: Types) -> OverColumn:
    frame = _span(call.frame)
    return NthColumn(name, types[0], columns[0], call.number, frame, call.ignore_nulls)


def _span(frame: FrameSpan) -> Frame:
    return (RowsFrame if frame.kind == ROWS else RangeFrame)(frame.preceding)


def _lag(call: LagCall, name: str, columns: tuple[str, ...], types: Types) -> OverColumn:
    default = columns[1] if len(columns) > 1 else None
    kind = LagValueColumn if call.ignore_nulls else LagColumn
    return kind(name, types[0], columns[0], call.offset, default)


_COLUMNS: dict[type, Callable[[Any, str, tuple[str, ...], Types], OverColumn]] = {
    FrameCall: _frame,
    LagCall: _lag,
    NthCall: _nth,
    RankCall: lambda call, name, columns, types: RankColumn(name, call.dense),
}
"""What the operator computes for each kind of call, over columns that hold its arguments."""
