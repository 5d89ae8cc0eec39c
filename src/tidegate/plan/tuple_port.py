"""Makes the ports of an operator whose rows are tuples: what each consumer takes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from tidegate.batch import DECIDED
from tidegate.operate.port import Port
from tidegate.plan.compatibility.canonical import PortForm
from tidegate.plan.cut import Unit
from tidegate.plan.determinism import require_deterministic
from tidegate.plan.fold import fold
from tidegate.plan.suffix import Suffix
from tidegate.query.check import bind_after
from tidegate.query.name import EVENT_TIME, is_column
from tidegate.schema import TIME


@dataclass(frozen=True)
class TuplePorts:
    """The ports, what they mean for the fingerprint, and by port what a checkpoint says of them."""

    ports: tuple[Port, ...]
    lines: tuple[str, ...]
    shown: tuple[tuple[str, ...], ...]


def tuple_ports(
    unit: Unit, columns: Mapping[str, exp.Expression], types: Mapping[str, pa.DataType]
) -> TuplePorts:
    """A port for each consumer of a unit, with the stateless nodes before it.

    `columns` are those of the unit's first node, as expressions over the columns that the operator
    puts out; `types` are the types of these. The operator's `ts` is the event time. Where the node
    shows another as `ts`, rows were decided later than their own time.
    """
    ports, lines, words = [], [], []
    for top in unit.tops:
        above = Suffix(dict(columns), (EVENT_TIME,))
        above.extend(top.node, unit.base)
        own = not is_column(above.columns[EVENT_TIME], {EVENT_TIME})
        selected = {n: e for n, e in above.columns.items() if own or n != EVENT_TIME}
        for part in (*above.where, *selected.values()):
            require_deterministic(part, "SELECT")
        outputs = tuple((n, fold(bind_after(e, types, "SELECT"))) for n, e in selected.items())
        shown = {EVENT_TIME: TIME} | {n: e.type for n, e in outputs}
        held = tuple(fold(bind_after(e, types, "WHERE", predicate=True)) for e in above.where)
        time = DECIDED if own else EVENT_TIME
        ports.append(Port(pa.schema(list(shown.items())), outputs, held, time=time))
        form = PortForm(list(selected.items()), above.where)
        lines += form.mark
        words.append(tuple(form.words()))
    return TuplePorts(tuple(ports), tuple(lines), tuple(words))
