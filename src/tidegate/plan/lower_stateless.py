"""Lowering of stateless nodes that no operator follows: they put tuples into the total order."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from tidegate.errors import QueryError
from tidegate.operate.port import Port
from tidegate.operate.stateless import Stateless
from tidegate.plan.cut import Unit
from tidegate.plan.lowered import Context, Lowered, output_lines
from tidegate.plan.pushdown import push_down
from tidegate.plan.recorded import Record, input_lines, select_lines
from tidegate.query.instant import event_column, event_offset
from tidegate.query.name import EVENT_TIME, WINDOW
from tidegate.query.node import data_names
from tidegate.schema import TIME


def lower_stateless(unit: Unit, context: Context) -> Iterator[Lowered]:
    """A subquery that puts tuples into the total order after filtering and projecting them."""
    base, front = unit.base, context.front
    implicit = WINDOW if base.windowed else (EVENT_TIME,)
    names = data_names(base)
    if EVENT_TIME in names:
        raise QueryError(
            "SELECT",
            f"the name {EVENT_TIME} belongs to the event time",
            "a column of that name which is not the stream's time",
            "Select the columns and rename it.",
        )
    leaves = push_down(base, front.types, front.results)
    held = (*WINDOW, *names) if base.windowed else names
    prefixes = front.prefixes(leaves, [[(n, lf.columns[n]) for n in held] for lf in leaves])
    selected = set(names)
    outputs = tuple((n, e) for n, e in prefixes[0].outputs if n in selected)
    fields = [pa.field(n, TIME) for n in implicit] + [pa.field(n, e.type) for n, e in outputs]
    port = Port(
        schema=pa.schema(fields),
        outputs=outputs,
        time=event_column(base),
        offset_us=event_offset(base),
    )
    lines = output_lines([(n, lf.columns[n]) for lf in leaves for n in held])
    shown = [
        line
        for leaf in leaves
        for line in (*input_lines(leaf), *select_lines([(n, leaf.columns[n]) for n in held]))
    ]
    yield Lowered(
        leaves=leaves,
        prefixes=prefixes,
        operator=Stateless(),
        ports=(port,),
        lines=tuple(lines),
        record=Record(after=(tuple(shown),)),
    )
