"""Plans the steps after an aggregate, one port per reader: HAVING, select list, ORDER BY, LIMIT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from tidegate.operate.port import OrderKey, Port, RankedRows
from tidegate.plan.compatibility.canonical import PortForm
from tidegate.plan.compatibility.query_record import Texts
from tidegate.plan.cut import Unit
from tidegate.plan.determinism import require_deterministic
from tidegate.plan.fold import fold
from tidegate.plan.suffix import Suffix
from tidegate.query.check import bind_after
from tidegate.query.name import WINDOW, column
from tidegate.query.node.instant import event_offset
from tidegate.query.node.node import Aggregate, Node, Order
from tidegate.query.ranking import TopRanked
from tidegate.schema import TIME

Ports = tuple[tuple[Port, ...], list[str], tuple[tuple[str, ...], ...]]


def window_ports(
    unit: Unit,
    base: Aggregate,
    types: Mapping[str, pa.DataType],
    texts: Texts,
    places: Mapping[str, exp.Expression] | None = None,
) -> Ports:
    """The ports of a unit over the columns k* and a* of its aggregate, and their texts.

    `types` are the types of these columns, `texts` their names in the query. `places` maps the
    aggregate's columns to expressions over them; without it they are the keys and functions in
    order. The second result is for the fingerprint, the third, by port, for the checkpoint's
    record.
    """
    known = dict.fromkeys(WINDOW, TIME) | dict(types)
    ports, lines, shown = [], [], []
    for top in unit.tops:
        suffix = _suffix(base, top.node, places or {})
        ports.append(_port(suffix, known, event_offset(base)))
        columns = list(suffix.columns.items())
        form = PortForm(
            columns, suffix.where, suffix.order, suffix.limit, windowed=True, ranked=suffix.ranked
        )
        lines += form.mark
        shown.append(tuple(form.words(texts)))
    return tuple(ports), lines, tuple(shown)


def _suffix(base: Aggregate, top: Node, places: Mapping[str, exp.Expression]) -> Suffix:
    columns: dict[str, exp.Expression] = {n: column(n) for n in WINDOW}
    columns |= {n: column(f"k{i}") for i, (n, _) in enumerate(base.keys)}
    columns |= {n: column(f"a{i}") for i, (n, _) in enumerate(base.aggregates)}
    columns |= places
    suffix = Suffix({name: columns[name] for name in base.names}, WINDOW)
    suffix.extend(top, base)
    return suffix


def _port(suffix: Suffix, types: dict[str, pa.DataType], offset_us: int) -> Port:
    """A port from a suffix, bound to kernels."""
    orders = (*suffix.order, *(suffix.ranked.order if suffix.ranked is not None else ()))
    for part in (*suffix.where, *suffix.columns.values(), *(o.expression for o in orders)):
        require_deterministic(part, "SELECT")
    outputs = tuple(
        (n, fold(bind_after(e, types, "SELECT")))
        for n, e in suffix.columns.items()
        if n not in WINDOW
    )
    fields = [pa.field(n, TIME) for n in WINDOW]
    return Port(
        schema=pa.schema([*fields, *(pa.field(n, e.type) for n, e in outputs)]),
        outputs=outputs,
        where=tuple(fold(bind_after(e, types, "HAVING", predicate=True)) for e in suffix.where),
        order=_order(suffix.order, types),
        ranked=_ranked(suffix.ranked, types),
        limit=suffix.limit,
        time=WINDOW[1],
        offset_us=offset_us,
    )


def _order(keys: Sequence[Order], types: Mapping[str, pa.DataType]) -> tuple[OrderKey, ...]:
    return tuple(
        OrderKey(fold(bind_after(o.expression, types, "ORDER BY")), o.descending, o.nulls_lead)
        for o in keys
    )


def _ranked(asked: TopRanked | None, types: Mapping[str, pa.DataType]) -> RankedRows | None:
    if asked is None:
        return None
    per = tuple(fold(bind_after(e, types, "PARTITION BY")) for e in asked.per)
    return RankedRows(per, _order(asked.order, types), asked.numbering)
