"""Lowers functions OVER the tuples of a key and the stateless nodes above them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from tidegate.operate.over.column import FrameColumn, LagColumn, OverColumn
from tidegate.operate.over.frame import RangeFrame, RowsFrame
from tidegate.operate.over.operator import OverTuples
from tidegate.plan.cut import Unit
from tidegate.plan.dependence import Origin, state_lines
from tidegate.plan.lowered import Context, Lowered
from tidegate.plan.recorded import Record, input_lines, prefix_texts, typed_texts
from tidegate.plan.tuple_input import KeyedInput
from tidegate.plan.tuple_port import tuple_ports
from tidegate.query.check import key_type
from tidegate.query.over import ROWS, FrameCall, LagCall, Over


def lower_over(unit: Unit, context: Context) -> Iterator[Lowered]:
    """The subquery of OVER: its inputs hold keys, arguments, and the columns that are read."""
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
    columns = []
    for name, call in zip(made.values(), calls, strict=True):
        taken = tuple(arguments[a] for a in call.arguments)
        columns.append(_COLUMNS[type(call)](call, name, taken, [types[t] for t in taken]))
    types |= {column.name: column.result for column in columns}
    above = tuple_ports(unit, inputs.columns, types)
    texts = typed_texts(prefixes, prefix_texts(prefixes))
    operator = OverTuples(
        keys=tuple((k, key_type(types[k], k, "PARTITION BY")) for k in keys),
        arguments=tuple((name, types[name]) for name in arguments.values()),
        columns=tuple(columns),
    )
    said = [call.over(leaves[0].over).text for call in calls]
    origin = Origin(
        inputs=[line for leaf in leaves for line in input_lines(leaf)],
        clauses=[*(f"partition by {texts[k]}" for k in keys), *(f"over {text}" for text in said)],
        texts=texts,
    )
    yield Lowered(
        leaves=leaves,
        prefixes=prefixes,
        operator=operator,
        ports=above.ports,
        lines=(*(f"over {keys} {text}" for text in said), *above.lines),
        record=Record(state=state_lines(operator, origin), after=above.shown),
    )


Types = Sequence[pa.DataType]


def _frame(call: FrameCall, name: str, columns: tuple[str, ...], types: Types) -> OverColumn:
    kind = RowsFrame if call.frame.kind == ROWS else RangeFrame
    return FrameColumn(call.call.function(name, columns, types), kind(call.frame.preceding))


def _lag(call: LagCall, name: str, columns: tuple[str, ...], types: Types) -> OverColumn:
    default = columns[1] if len(columns) > 1 else None
    return LagColumn(name, types[0], columns[0], call.offset, default)


_COLUMNS: dict[type, Callable[[Any, str, tuple[str, ...], Types], OverColumn]] = {
    FrameCall: _frame,
    LagCall: _lag,
}
"""What the operator computes for each kind of call, over columns that hold its arguments."""
