"""Finds the rows in which two outputs differ, reading both piece by piece in their order."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.sink.json import encoded

CHANGED, MOVED, ONLY_OLD, ONLY_NEW = "changed", "moved", "only in old", "only in new"
KINDS = (CHANGED, MOVED, ONLY_OLD, ONLY_NEW)

Cells = tuple[Any, ...]


@dataclass(frozen=True)
class RowDifference:
    """One difference; row numbers count from 0, None if a side has no such row.

    `values` are the columns of the row; of a changed row, those that are equal. `changes` are the
    other columns, each with its old and its new value.
    """

    kind: str
    old_row: int | None
    new_row: int | None
    values: dict[str, Any]
    changes: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        changes = {name: {"old": a, "new": b} for name, (a, b) in self.changes.items()}
        return {
            "kind": self.kind,
            "old_row": self.old_row,
            "new_row": self.new_row,
            "values": self.values,
            "changes": changes,
        }


@dataclass
class DifferenceLog:
    """Counts differences by kind and by changed column; keeps the first `most` of them."""

    most: int
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    columns: dict[str, int] = field(default_factory=dict)
    listed: list[RowDifference] = field(default_factory=list)

    def add(self, difference: RowDifference) -> None:
        self.counts[difference.kind] += 1
        for name in difference.changes:
            self.columns[name] = self.columns.get(name, 0) + 1
        if len(self.listed) < self.most:
            self.listed.append(difference)


class OutputReader:
    """Reads the rows of one output, and returns them up to a given instant.

    The instant of a row is the largest value of the column `time` so far; in most outputs that is
    its event time. Early results and rows of outer joins show an earlier time than the one they are
    ordered by; they belong to the instant of the rows before them. Holds one batch of rows and the
    rows of one instant.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch], time: str, names: Sequence[str]) -> None:
        self._batches, self._time, self._names = batches, time, names
        self._held: list[tuple[pa.Table, npt.NDArray[np.int64]]] = []
        self._largest: int | None = None
        self.taken = 0
        """The number of rows that `take` has returned."""
        self.ended = False

    @property
    def complete_us(self) -> int | None:
        """All rows before this instant have been read; None at the end of the output."""
        return None if self.ended else self._largest

    def read(self) -> None:
        """Read one more batch."""
        batch = next(self._batches, None)
        if batch is None:
            self.ended = True
        elif batch.num_rows:
            times = batch.column(self._time).cast(pa.int64()).to_numpy(zero_copy_only=False)
            if self._largest is not None:
                times = np.maximum(times, self._largest)
            instants = np.maximum.accumulate(times)
            self._largest = int(instants[-1])
            self._held.append((pa.Table.from_batches([batch]).select(self._names), instants))

    def take(self, before_us: int | None) -> tuple[pa.Table | None, npt.NDArray[np.int64]]:
        """Remove and return the rows before an instant (None: all), with their instants."""
        tables, instants, left = [], [], []
        for table, of in self._held:
            rows = len(of) if before_us is None else int(np.searchsorted(of, before_us))
            if rows:
                tables.append(table.slice(0, rows))
                instants.append(of[:rows])
            if rows < len(of):
                left.append((table.slice(rows), of[rows:]))
        self._held = left
        if not tables:
            return None, np.empty(0, np.int64)
        found = np.concatenate(instants)
        self.taken += len(found)
        return pa.concat_tables(tables), found


def compare_rows(
    old: OutputReader, new: OutputReader, keys: Sequence[str], log: DifferenceLog
) -> None:
    """Add the differences of two outputs to `log`; both must have the same columns and types.

    Rows of one instant are paired by their `keys`, rows of one key in their order. Without keys,
    equal rows are paired, and the others in their order. Equal pieces cost one comparison of
    arrays; only the others are compared row by row.
    """
    while open_sides := [side for side in (old, new) if not side.ended]:
        # Read the side that is behind. Rows of the other side beyond it could only be held.
        min(open_sides, key=_reached).read()
        ends = [side.complete_us for side in (old, new) if not side.ended]
        known = [end for end in ends if end is not None]
        if len(known) == len(ends):
            _compare_piece(old, new, min(known, default=None), keys, log)


def _reached(side: OutputReader) -> float:
    return -inf if side.complete_us is None else side.complete_us


def _compare_piece(
    old: OutputReader,
    new: OutputReader,
    before_us: int | None,
    keys: Sequence[str],
    log: DifferenceLog,
) -> None:
    starts = old.taken, new.taken
    (a, a_us), (b, b_us) = old.take(before_us), new.take(before_us)
    if a is not None and b is not None and np.array_equal(a_us, b_us) and a.equals(b):
        return
    rows, others = _Piece.of(a, a_us, starts[0], keys), _Piece.of(b, b_us, starts[1], keys)
    for instant in np.union1d(a_us, b_us):
        _compare_instant(rows.at(instant), others.at(instant), log)


@dataclass(frozen=True)
class _Piece:
    """Consecutive rows of one side as cells; `first` is the number of the first one."""

    names: tuple[str, ...]
    key: tuple[int, ...]
    cells: list[Cells]
    instants: npt.NDArray[np.int64]
    first: int

    @staticmethod
    def of(
        table: pa.Table | None, instants: npt.NDArray[np.int64], first: int, keys: Sequence[str]
    ) -> _Piece:
        if table is None:
            return _Piece((), (), [], instants, first)
        names = tuple(table.column_names)
        cells = list(zip(*(_cells(column) for column in table.columns), strict=True))
        return _Piece(names, tuple(names.index(key) for key in keys), cells, instants, first)

    def at(self, instant: np.int64) -> _Piece:
        start = int(np.searchsorted(self.instants, instant))
        stop = int(np.searchsorted(self.instants, instant, side="right"))
        rows = self.cells[start:stop]
        return _Piece(self.names, self.key, rows, self.instants[start:stop], self.first + start)

    def token(self, row: int) -> Cells:
        cells = self.cells[row]
        return tuple(cells[i] for i in self.key) if self.key else cells

    def values(self, row: int) -> dict[str, Any]:
        cells = self.cells[row]
        return {name: value_of(cell) for name, cell in zip(self.names, cells, strict=True)}


def _cells(column: pa.ChunkedArray) -> list[str | None]:
    """JSON text tells all values apart, and NaN is equal to itself in it."""
    values = column.combine_chunks()
    if pa.types.is_floating(values.type):
        values = pc.add(values, pa.scalar(0.0, values.type))  # as in arrays, -0.0 equals 0.0
    texts: list[str | None] = encoded(values).to_pylist()
    if pa.types.is_decimal(values.type):
        return [None if text is None else f'"{text}"' for text in texts]  # JSON has floats only
    return texts


def value_of(cell: str | None) -> Any:
    """A cell as plain data: numbers that are not finite, decimals and times are texts."""
    return None if cell is None else json.loads(cell, parse_constant=str)


def _compare_instant(old: _Piece, new: _Piece, log: DifferenceLog) -> None:
    if old.cells == new.cells:
        return
    pairs, alone_old, alone_new = _paired(old, new)
    if not old.key:
        both = min(len(alone_old), len(alone_new))
        pairs = sorted([*pairs, *zip(alone_old[:both], alone_new[:both], strict=True)])
        alone_old, alone_new = alone_old[both:], alone_new[both:]
    furthest = -1
    for a, b in pairs:
        changes = {
            name: (value_of(x), value_of(y))
            for name, x, y in zip(old.names, old.cells[a], new.cells[b], strict=True)
            if x != y
        }
        moved = b < furthest
        furthest = max(furthest, b)
        if changes or moved:
            same = {n: v for n, v in old.values(a).items() if n not in changes}
            kind = CHANGED if changes else MOVED
            log.add(RowDifference(kind, old.first + a, new.first + b, same, changes))
    for a in alone_old:
        log.add(RowDifference(ONLY_OLD, old.first + a, None, old.values(a)))
    for b in alone_new:
        log.add(RowDifference(ONLY_NEW, None, new.first + b, new.values(b)))


def _paired(old: _Piece, new: _Piece) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Rows of equal token, first with first; and those of each side that have no other."""
    waiting: dict[Cells, deque[int]] = defaultdict(deque)
    for b in range(len(new.cells)):
        waiting[new.token(b)].append(b)
    pairs, alone = [], []
    for a in range(len(old.cells)):
        partners = waiting.get(old.token(a))
        if partners:
            pairs.append((a, partners.popleft()))
        else:
            alone.append(a)
    return pairs, alone, sorted(b for rows in waiting.values() for b in rows)
