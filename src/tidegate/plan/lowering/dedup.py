"""Lowers deduplication and the stateless nodes above it."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.operate.dedup.last import LastOfKey
from tidegate.operate.dedup.operator import FirstOfKey
from tidegate.operate.operator import Operator
from tidegate.operate.tuple_rows import OWN_TIME
from tidegate.plan.compatibility.dependence import Origin, state_lines
from tidegate.plan.compatibility.query_record import Record, input_lines, prefix_texts, typed_texts
from tidegate.plan.cut import Unit
from tidegate.plan.lowering.rule import Context, Lowered
from tidegate.plan.tuple_input import KeyedInput
from tidegate.plan.tuple_port import tuple_ports
from tidegate.query.name import EVENT_TIME, column
from tidegate.query.node.dedup import FIRST, LAST, Dedup
from tidegate.schema import TIME


def lower_dedup(unit: Unit, context: Context) -> Iterator[Lowered]:
    """The subquery of DISTINCT ON: its inputs hold the keys, and the columns that are read."""
    base, front = unit.base, context.front
    assert isinstance(base, Dedup)
    leaves = front.leaves(base.child)
    given = KeyedInput.of(unit, base.names, {f"k{i}": key for i, key in enumerate(base.keys)})
    prefixes = front.prefixes(leaves, [given.outputs(leaf) for leaf in leaves])
    types = given.types(prefixes[0]) | {OWN_TIME: TIME}
    shown = dict(given.columns)
    if base.keep == LAST and not base.child.own_time:
        shown[EVENT_TIME] = column(OWN_TIME)
    above = tuple_ports(unit, shown, types)
    keys = tuple(given.place(f"k{i}") for i in range(len(base.keys)))
    texts = typed_texts(prefixes, prefix_texts(prefixes))
    names = tuple(name for name, _ in prefixes[0].outputs)
    kinds: dict[str, Operator] = {
        FIRST: FirstOfKey(keys, base.within_us),
        LAST: LastOfKey(keys, base.within_us, names),
    }
    operator = kinds[base.keep]
    origin = Origin(
        inputs=[line for leaf in leaves for line in input_lines(leaf)],
        clauses=[
            f"keep {base.keep} within {base.within_us} us",
            *(f"key {texts[key]}" for key in keys),
        ],
        texts=texts,
    )
    yield Lowered(
        leaves=leaves,
        prefixes=prefixes,
        operator=operator,
        ports=above.ports,
        lines=(f"distinct {keys} {base.keep} {base.within_us}", *above.lines),
        record=Record(
            state=state_lines(operator, origin),
            columns={n: texts[n] for n in names} if base.keep == LAST else {},
            after=above.shown,
        ),
    )
