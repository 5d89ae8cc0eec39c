"""Says what an operator over tuples is given: the columns that its consumers read, and its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from tidegate.plan.cut import Unit
from tidegate.plan.physical import Prefix
from tidegate.plan.pushdown import Leaf
from tidegate.plan.suffix import Suffix
from tidegate.query.name import EVENT_TIME, NamedExpr, column, is_column
from tidegate.schema import TIME


@dataclass(frozen=True)
class KeyedInput:
    """The columns of a unit's child under the names c0, c1, ... that its operator has for them.

    `columns` are those of the unit's first node that somebody reads, as expressions over the
    operator's; `own` are the operator's own expressions over the child, by the names it gave them,
    and `made` the columns of the node that the operator makes.
    """

    columns: Mapping[str, exp.Expression]
    own: Mapping[str, exp.Expression]
    made: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(
        unit: Unit,
        names: Sequence[str],
        own: Mapping[str, exp.Expression],
        made: Mapping[str, str] | None = None,
    ) -> KeyedInput:
        read = _read(unit, names)
        columns: dict[str, exp.Expression] = {EVENT_TIME: column(EVENT_TIME)}
        own_time = any(child.own_time for child in unit.base.children)
        made = made or {}
        kept = [n for n in names if n in read and n not in made and (n != EVENT_TIME or own_time)]
        columns |= {name: column(f"c{i}") for i, name in enumerate(kept)}
        columns |= {name: column(own_name) for name, own_name in made.items()}
        return KeyedInput(columns, own, made)

    def place(self, name: str) -> str:
        """The operator's column that has one of its own expressions; others may read it too."""
        for held, at in self.columns.items():
            if at.name != EVENT_TIME and is_column(self.own[name], {held}):
                return at.name
        return name

    def outputs(self, leaf: Leaf) -> list[NamedExpr]:
        """What the prefix of a leaf puts out."""
        held = [
            (at.name, leaf.columns[n])
            for n, at in self.columns.items()
            if at.name != EVENT_TIME and n not in self.made
        ]
        more = [(n, leaf.over(e)) for n, e in self.own.items() if self.made or self.place(n) == n]
        return [*held, *more]

    def types(self, prefix: Prefix) -> dict[str, pa.DataType]:
        """The types of the operator's columns."""
        return {EVENT_TIME: TIME} | {name: e.type for name, e in prefix.outputs}


def _read(unit: Unit, names: Sequence[str]) -> set[str]:
    """The columns of a unit's first node that what follows it reads."""
    read: set[str] = set()
    for top in unit.tops:
        above = Suffix({n: column(n) for n in names}, (EVENT_TIME,))
        if EVENT_TIME not in names:
            above.columns[EVENT_TIME] = column(EVENT_TIME)
        above.extend(top.node, unit.base)
        for part in (*above.where, *above.columns.values()):
            read |= {c.name for c in part.find_all(exp.Column)}
    return read
