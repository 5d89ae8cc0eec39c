"""Finds the tuples of frames: what functions OVER have looked at beside the tuple of a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.connector import Int64s
from tidegate.query.name import NamedExpr
from tidegate.query.node.node import Project
from tidegate.query.node.over import RANGE, ROWS, LagCall, LeadCall, Over, OverCall, RankCall
from tidegate.query.trace import WHY, Traced, joined
from tidegate.session.why.origin import TupleId, ids_of, made_of
from tidegate.session.why.runs import TracedQuery
from tidegate.session.why.span import TupleSpan, times_of
from tidegate.sink.digest.digest import row_hashes


def of_frames(
    runs: TracedQuery, node: Over, found: Mapping[int, Traced], ids: set[TupleId], span: TupleSpan
) -> set[TupleId]:
    """The ids of all tuples in the frames of rows that are made of these.

    Reads the rows below the node twice; holds those that have a key in question.
    """
    child = found[id(node.child)]
    keys: list[NamedExpr] = [(f"k{i}", key) for i, key in enumerate(node.keys)]
    rows = Project(child[0], (*keys, (WHY, joined(child[1]))))
    names = [name for name, _ in keys]
    asked: set[int] = set()

    def note_keys(table: pa.Table) -> bool:
        asked.update(_hashes(table, names)[made_of(table.column(WHY), ids)].tolist())
        return span.ends_before(table)

    runs.traced_rows(rows, span.low_us, note_keys)
    parts: list[tuple[Any, pa.Table]] = []

    def hold(table: pa.Table) -> bool:
        hashes = _hashes(table, names)
        mask = np.isin(hashes, np.array(sorted(asked), np.uint64))
        parts.append((hashes[mask], table.filter(pa.array(mask))))
        return span.ends_before(table)

    runs.traced_rows(rows, span.low_us, hold)
    if not parts:
        return set()
    hashes, table = np.concatenate([h for h, _ in parts]), pa.concat_tables([t for _, t in parts])
    chosen = np.zeros(table.num_rows, np.bool_)
    current = made_of(table.column(WHY), ids)
    times = times_of(table)
    for key in asked:
        members = np.flatnonzero(hashes == key)
        for at in np.flatnonzero(current[members]):
            for _, call in node.calls:
                frame = _Frame.of(call)
                low, high = frame.ends(times[members], int(at))
                chosen[members[low:high]] = True
    return ids_of(table.filter(pa.array(chosen)).column(WHY).to_pylist())


def _hashes(table: pa.Table, names: Iterable[str]) -> Any:
    batch = table.select(list(names)).combine_chunks()
    if not batch.num_columns:
        return np.zeros(table.num_rows, np.uint64)
    found = [row_hashes(part) for part in batch.to_batches()]
    return np.concatenate(found) if found else np.zeros(0, np.uint64)


@dataclass(frozen=True)
class _Frame:
    """How far a call looks, in tuples and in microseconds; None is without end."""

    back_rows: int | None
    back_us: int | None = None
    peers: bool = False
    ahead_rows: int | None = 0

    @staticmethod
    def of(call: OverCall) -> _Frame:
        if isinstance(call, LeadCall):
            return _Frame(0, ahead_rows=None if call.ignore_nulls else call.offset)
        if isinstance(call, LagCall):
            return _Frame(None if call.ignore_nulls else call.offset)
        if isinstance(call, RankCall):
            return _Frame(None, peers=True)
        frame = call.frame  # type: ignore[attr-defined]
        rows, us = (frame.preceding, None) if frame.kind == ROWS else (None, frame.preceding)
        return _Frame(rows, us, peers=frame.kind == RANGE)

    def ends(self, times: Int64s, at: int) -> tuple[int, int]:
        """The first tuple of the frame of a tuple, and the first after it."""
        low = 0 if self.back_rows is None else max(at - self.back_rows, 0)
        if self.back_us is not None:
            low = max(low, int(np.searchsorted(times, times[at] - self.back_us)))
        high = at + 1
        if self.peers:
            high = max(high, int(np.searchsorted(times, times[at], "right")))
        if self.ahead_rows is None:
            return low, len(times)
        return low, min(max(high, at + 1 + self.ahead_rows), len(times))
