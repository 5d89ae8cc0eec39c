"""Lowers the user's own operator and the stateless nodes above it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tidegate.operate.process.definition import ProcessSpec
from tidegate.operate.process.initial_check import CheckState
from tidegate.operate.process.operator import UserProcess
from tidegate.plan.compatibility.dependence import Origin, state_lines
from tidegate.plan.compatibility.query_record import Record, input_lines, prefix_texts, typed_texts
from tidegate.plan.cut import Unit
from tidegate.plan.lowering.rule import Context, Lowered
from tidegate.plan.tuple_port import tuple_ports
from tidegate.query.name import EVENT_TIME, column
from tidegate.query.node.limit import OWN_TIME, Limit
from tidegate.query.node.node import ProcessNode
from tidegate.query.table import TableDef
from tidegate.schema import TIME


def lower_process(unit: Unit, context: Context) -> Iterator[Lowered]:
    """The subquery of a process: its inputs hold the columns that it sees, by position."""
    base, front = unit.base, context.front
    assert isinstance(base, ProcessNode)
    leaves = front.leaves(base.child)
    seen = [(f"c{i}", name) for i, name in enumerate(base.columns)]
    named = [[(c, leaf.columns[name]) for c, name in seen] for leaf in leaves]
    prefixes = front.prefixes(leaves, named)
    found = dict(prefixes[0].outputs)
    seen_types = {name: found[c].type for c, name in seen}
    base = base.typed(seen_types)
    spec = base.spec(seen_types)
    types = {EVENT_TIME: TIME, **dict(base.output)}
    columns = {n: column(n) for n in base.names}
    if base.own_time:
        columns[EVENT_TIME] = column(OWN_TIME)
    above = tuple_ports(unit, columns, types)
    texts = typed_texts(prefixes, prefix_texts(prefixes))
    operator = UserProcess(spec)
    origin = Origin(
        inputs=[line for leaf in leaves for line in input_lines(leaf)],
        clauses=[
            base.summary if isinstance(base, Limit) else base.identity,
            *(f"column {name} {texts[c]}" for c, name in seen),
        ],
        texts=texts,
    )
    yield Lowered(
        leaves=leaves,
        prefixes=prefixes,
        operator=operator,
        ports=above.ports,
        lines=(base.identity, *above.lines),
        record=Record(state=state_lines(operator, origin), after=above.shown),
        tables=_tables(base, spec),
    )


def _tables(base: ProcessNode, spec: ProcessSpec) -> tuple[TableDef, ...]:
    """The table of initial state, if there is one, with what is asked of its rows."""
    if base.initial is None or spec.initial is None:
        return ()
    return (replace(base.initial, check=CheckState(spec.initial.keys, spec.initial.time)),)
