"""A history and then a topic, row at a time: the plain union of both, in the total order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple


class Record(NamedTuple):
    """A row with its event time, and where the topic has it."""

    ts: datetime
    v: int
    partition: int
    offset: int


def by_offset(
    history: Sequence[Sequence[Record]], topic: Mapping[int, Sequence[Record]]
) -> list[Record]:
    """All of the history, and of each partition what comes after its highest offset there."""
    sources = [list(file) for file in history]
    for partition in sorted(topic):
        read = [r.offset for file in history for r in file if r.partition == partition]
        last = max(read, default=-1)
        sources.append([r for r in topic[partition] if r.offset > last])
    return merged(sources)


def by_time(
    history: Sequence[Sequence[Record]], topic: Mapping[int, Sequence[Record]], until: datetime
) -> list[Record]:
    """Of the history what is before a time, of the topic what is not."""
    sources = [[r for r in file if r.ts < until] for file in history]
    sources += [[r for r in topic[p] if r.ts >= until] for p in sorted(topic)]
    return merged(sources)


def merged(sources: Sequence[Sequence[Record]]) -> list[Record]:
    """By time, then by source, then as they stand in it."""
    placed: list[tuple[Any, ...]] = [
        (row.ts, source, place, row)
        for source, rows in enumerate(sources)
        for place, row in enumerate(rows)
    ]
    return [row for _, _, _, row in sorted(placed, key=lambda p: p[:3])]
