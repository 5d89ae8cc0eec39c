"""Plans EMIT EVERY: panes are also cut at its marks, and rows are emitted at marks."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from tidegate.batch import DECIDED
from tidegate.operate.aggregate.pane.early import FINAL as COLUMN
from tidegate.operate.aggregate.pane.early import EarlyAnswer
from tidegate.plan.aggregate.lowered_aggregate import AskedAggregate, PlannedAnswer
from tidegate.plan.aggregate.port import window_ports
from tidegate.plan.aggregate.window import WindowPlan
from tidegate.query.clause.column import FINAL
from tidegate.query.clause.emit import EmitEvery
from tidegate.query.name import column


def plan_emit(asked: AskedAggregate, window: WindowPlan, clause: EmitEvery) -> PlannedAnswer:
    """Exact answers with the column `final`.

    The event time of an early row is the last instant before its mark, as that of a final row is
    the last one of its window.
    """
    ports, after, shown = window_ports(
        asked.unit,
        asked.base,
        asked.columns | {COLUMN: pa.bool_()},
        dict(asked.texts) | {COLUMN: FINAL},
        {FINAL: column(COLUMN)},
    )
    planned = PlannedAnswer(
        answer=EarlyAnswer(),
        functions=asked.functions,
        prefixes=asked.prefixes,
        ports=tuple(replace(port, time=DECIDED) for port in ports),
        after=after,
        shown=shown,
        clauses=(clause.shown,),
        by_key=str(clause),
    )
    return window.early(planned, clause.every_us)
