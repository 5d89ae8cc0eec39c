"""Lowering of the user's own operator and the stateless nodes above it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from tidegate.operate.port import Port
from tidegate.operate.process.operator import UserProcess
from tidegate.plan.cut import Unit
from tidegate.plan.dependence import Origin, state_lines
from tidegate.plan.determinism import require_deterministic
from tidegate.plan.fingerprint import meaning
from tidegate.plan.fold import fold
from tidegate.plan.lowered import Context, Lowered, output_lines
from tidegate.plan.prefix import spark_sql
from tidegate.plan.recorded import (
    Record,
    input_lines,
    prefix_texts,
    select_lines,
    typed_texts,
    written,
)
from tidegate.plan.suffix import Suffix
from tidegate.query.check import bind_after
from tidegate.query.limit import Limit
from tidegate.query.name import EVENT_TIME, column
from tidegate.query.node import Process
from tidegate.schema import TIME


def lower_process(unit: Unit, context: Context) -> Iterator[Lowered]:
    """The subquery of a process: its inputs hold the columns that it sees, by position."""
    base, front = unit.base, context.front
    assert isinstance(base, Process)
    leaves = front.leaves(base.child)
    seen = [(f"c{i}", name) for i, name in enumerate(base.columns)]
    named = [[(c, leaf.columns[name]) for c, name in seen] for leaf in leaves]
    prefixes = front.prefixes(leaves, named)
    found = dict(prefixes[0].outputs)
    seen_types = {name: found[c].type for c, name in seen}
    base = base.typed(seen_types)
    spec = base.spec(seen_types)
    types = {EVENT_TIME: TIME, **dict(base.output)}
    ports, lines, shown = [], [base.identity], []
    for top in unit.tops:
        above = Suffix({n: column(n) for n in base.names}, (EVENT_TIME,))
        above.extend(top.node, unit.base)
        columns = {n: e for n, e in above.columns.items() if n != EVENT_TIME}
        for part in (*above.where, *columns.values()):
            require_deterministic(part, "SELECT")
        outputs = tuple((n, fold(bind_after(e, types, "SELECT"))) for n, e in columns.items())
        fields = [pa.field(EVENT_TIME, TIME), *(pa.field(n, e.type) for n, e in outputs)]
        held = tuple(fold(bind_after(e, types, "WHERE", predicate=True)) for e in above.where)
        ports.append(Port(pa.schema(fields), outputs, held))
        lines += [f"where {meaning(spark_sql(e))}" for e in above.where]
        lines += output_lines(columns.items())
        conditions = [f"where {written(e)}" for e in above.where]
        shown.append((*conditions, *select_lines(columns.items())))
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
        ports=tuple(ports),
        lines=tuple(lines),
        record=Record(state=state_lines(operator, origin), after=tuple(shown)),
    )
