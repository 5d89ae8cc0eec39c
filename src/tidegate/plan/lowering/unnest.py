"""Lowers EXPLODE and UNNEST, and the stateless nodes above them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from tidegate.operate.unnest import PLACE, VALUE, VALUES, UnnestTuples
from tidegate.plan.compatibility.query_record import Record
from tidegate.plan.cut import Unit
from tidegate.plan.lowering.rule import Context, Lowered
from tidegate.plan.tuple_port import tuple_ports
from tidegate.query.name import EVENT_TIME, column
from tidegate.query.node.unnest import Unnest
from tidegate.schema import TIME


def lower_unnest(unit: Unit, context: Context) -> Iterator[Lowered]:
    """The subquery of an Unnest: the columns of the child come to it as c0, c1, and the lists."""
    base = unit.base
    assert isinstance(base, Unnest)
    leaves = context.front.leaves(base.child)
    shown = (EVENT_TIME,) if base.own_time else ()
    names = {name: f"c{i}" for i, name in enumerate((*base.columns, *shown))}
    outputs = [
        [
            *((own, leaf.columns[name]) for name, own in names.items()),
            (VALUES, leaf.over(base.values)),
        ]
        for leaf in leaves
    ]
    prefixes = context.front.prefixes(leaves, outputs)
    found = {name: e.type for name, e in prefixes[0].outputs}
    types = {EVENT_TIME: TIME, **found, PLACE: pa.int32(), VALUE: base.element(found[VALUES])}
    columns = {EVENT_TIME: column(EVENT_TIME), **{n: column(own) for n, own in names.items()}}
    made = (column(VALUE),) if base.position is None else (column(PLACE), column(VALUE))
    columns |= dict(zip(base.added, made, strict=True))
    above = tuple_ports(unit, columns, types)
    yield Lowered(
        leaves=leaves,
        prefixes=prefixes,
        operator=UnnestTuples(base.first, base.outer),
        ports=above.ports,
        lines=(base.summary, *above.lines),
        record=Record(after=above.shown),
    )
