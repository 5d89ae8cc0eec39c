"""The join of tuples to a table, one row at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
Condition = Callable[[Row, Row], bool | None]


@dataclass(frozen=True)
class PlainTable:
    """The rows of a table in their order, and which of them fit a tuple; NULL does not.

    With `valid_from`, a column of microseconds, `key` says which rows are versions of one.
    """

    rows: Sequence[Row]
    on: Condition
    how: str = "inner"
    valid_from: str | None = None
    key: Condition = lambda row, other: True

    def fitting(self, row: Row) -> list[Row]:
        """The rows that fit a tuple, whose event time is under `ts`."""
        return [other for other in self._known(row) if self.on(row, other)]

    def joined(self, row: Row) -> list[Row | None]:
        """What a tuple is joined to: a row, or None where it stays alone."""
        found = self.fitting(row)
        if self.how in ("semi", "anti"):
            return [None] if bool(found) == (self.how == "semi") else []
        return [*found] or ([None] if self.how == "left" else [])

    def _known(self, row: Row) -> Sequence[Row]:
        if self.valid_from is None:
            return self.rows
        begun = [
            (other[self.valid_from], place)
            for place, other in enumerate(self.rows)
            if other[self.valid_from] is not None
            and other[self.valid_from] <= row["ts"]
            and self.key(row, other)
        ]
        return [self.rows[max(begun)[1]]] if begun else []
