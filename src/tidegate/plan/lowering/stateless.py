"""Lowering of stateless nodes that no operator follows: they put tuples into the total order."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from sqlglot import exp

from tidegate.batch import DECIDED
from tidegate.operate.port import Port
from tidegate.operate.stateless import Stateless
from tidegate.plan.compatibility.canonical import PortForm
from tidegate.plan.compatibility.query_record import Record, input_lines
from tidegate.plan.cut import Unit
from tidegate.plan.lowering.rule import Context, Lowered
from tidegate.plan.pushdown import push_down
from tidegate.query.name import EVENT_TIME, WINDOW
from tidegate.query.node.instant import event_column, event_offset
from tidegate.query.node.node import result_columns
from tidegate.query.unqualified import unqualified_columns
from tidegate.schema import TIME

_UNTOLD = exp.cast(exp.Null(), "TIMESTAMP", dialect="spark")
"""Stands for the event time that only a source can read."""


def lower_stateless(unit: Unit, context: Context) -> Iterator[Lowered]:
    """A subquery that puts tuples into the total order after filtering and projecting them."""
    base, front = unit.base, context.front
    implicit = WINDOW if base.windowed else (EVENT_TIME,)
    named = unqualified_columns(base) if unit.tops[0].output else result_columns(base)
    leaves = push_down(base, front.types, front.results)
    held = [*((n, n) for n in WINDOW), *named] if base.windowed else named
    if base.own_time:
        held = [(EVENT_TIME, EVENT_TIME), *named]
    outputs_of = [[(n, leaf.columns.get(own, _UNTOLD)) for n, own in held] for leaf in leaves]
    prefixes = front.prefixes(leaves, outputs_of)
    selected = {name for name, _ in named}
    outputs = tuple((n, e) for n, e in prefixes[0].outputs if n in selected)
    fields = [pa.field(n, TIME) for n in implicit] + [pa.field(n, e.type) for n, e in outputs]
    time = event_column(base)
    port = Port(
        schema=pa.schema(fields),
        outputs=outputs,
        time=time,
        offset_us=0 if time == DECIDED else event_offset(base),
    )
    forms = [PortForm(items) for items in outputs_of]
    shown = [
        line
        for leaf, form in zip(leaves, forms, strict=True)
        for line in (*input_lines(leaf), *form.words())
    ]
    yield Lowered(
        leaves=leaves,
        prefixes=prefixes,
        operator=Stateless(),
        ports=(port,),
        lines=tuple(line for form in forms for line in form.mark),
        record=Record(after=(tuple(shown),)),
    )
