"""Rows of open windows at every mark, each from the tuples before it: the twin of EMIT EVERY."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle.aggregate import groups_of
from tests.oracle.function import result
from tests.oracle.query import Cells, Row, Windowed, ordered
from tests.oracle.session import sessions
from tidegate.operate.aggregate.pane.pane import AggregateSpec
from tidegate.operate.session.spec import SessionSpec


@dataclass(frozen=True)
class Emitted:
    """An aggregate over windows of time whose groups also give rows at multiples of `every`."""

    windowed: Windowed
    every: int

    def rows(self, tuples: Sequence[Row]) -> list[Cells]:
        numbered = [{**row, "src": 0, "seq": seq} for seq, row in enumerate(tuples)]
        numbered = [row for row in numbered if self.windowed.where(row)]
        spec = self.windowed.spec
        assert isinstance(spec, AggregateSpec)
        ends = {end for _, end, _, _ in groups_of(spec, numbered)}
        marks = {(row["ts"] // self.every + 1) * self.every for row in numbered}
        given: list[Cells] = []
        for time in sorted(ends | marks):
            seen = [row for row in numbered if row["ts"] < time]
            early, final = [], []
            for start, end, keys, members in groups_of(spec, seen):
                if end == time or (end > time and self._changed(members, time)):
                    results = [result(f, members, {}) for f in spec.functions]
                    given_now = final if end == time else early
                    given_now.append((start, end, *keys, *results, end == time))
            given += self._ordered(spec, early) + self._ordered(spec, final)
        return given

    def _changed(self, members: Sequence[Mapping[str, Any]], time: int) -> bool:
        return time % self.every == 0 and members[-1]["ts"] >= time - self.every

    def _ordered(self, spec: AggregateSpec, rows: Sequence[Cells]) -> list[Cells]:
        names = [name for name, _ in spec.keys] + [f.name for f in spec.functions]
        return ordered(self.windowed, rows, [*names, "final"])


@dataclass(frozen=True)
class EmittedSessions:
    """Sessions that also give rows at multiples of `every`, while a tuple may still be added."""

    windowed: Windowed
    every: int

    def rows(self, tuples: Sequence[Row]) -> list[Cells]:
        numbered = [{**row, "src": 0, "seq": seq} for seq, row in enumerate(tuples)]
        spec = self.windowed.spec
        assert isinstance(spec, SessionSpec)
        whole = sessions(spec, numbered)
        marks = {(row["ts"] // self.every + 1) * self.every for row in numbered}
        given: list[Cells] = []
        for time in sorted({cells[1] for cells in whole} | marks):
            seen = [row for row in numbered if row["ts"] < time]
            since = time - self.every if time in marks else time
            early = [
                (*cells, False)
                for cells in sessions(spec, seen)
                if cells[1] >= time and cells[1] - spec.gap_us >= since
            ]
            final = [(*cells, True) for cells in whole if cells[1] == time]
            names = [name for name, _ in spec.keys] + [f.name for f in spec.functions]
            for rows in (early, final):
                given += ordered(self.windowed, rows, [*names, "final"])
        return given
