"""Rewrites segments into fewer and larger ones with the same live rows.

`choose` decides from numbers alone; `compact` does the work, off the critical path of a batch. The
segments of an operator are a list, oldest first; a compacted segment takes the place of its group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import gathered
from tidegate.state.segment.segment import (
    Absent,
    Segment,
    read_segment,
    whole_numbers,
    write_segment,
)
from tidegate.state.store import Store

FANIN = 4
"""How many neighbours of similar size make a run worth merging; also the ratio between tiers."""

DEAD_SHARE = 0.2
"""A segment with a greater share of dead rows is rewritten by itself."""

FOREVER = 2**63
"""The size of a cell for rows that do not die with time: all are in one cell."""

Live = Callable[[pa.Table, Segment], npt.NDArray[np.bool_] | pa.Array]
"""From rows of a segment, and the segment, to a boolean per row: true where it is needed."""


def choose(
    segments: Sequence[Segment],
    live_rows: Sequence[int],
    *,
    cell: int | None = None,
    dead_share: float = DEAD_SHARE,
    most_rows: int = 4_000_000,
    most_groups: int = 4,
    most_segments: int = 64,
) -> tuple[tuple[Segment, ...], ...]:
    """Which groups to compact now: each a run of neighbours in `segments`, none in two groups.

    `live_rows[i]` is how many rows of `segments[i]` are still needed; an estimate will do.

    - A run is merged when at least four of its segments are of one size (a power of four in live
      rows) and the others between them are smaller. So a row is rewritten a number of times that is
      logarithmic in the rows.
    - With `cell`, only segments whose order column lies within one cell of that size are merged:
      rows that die together stay together, and their segments are dropped as a whole.
    - Without such a run, and with more than `most_segments` segments, the four neighbours with the
      fewest rows are merged.
    - Single segments with more than `dead_share` of dead rows follow, the worst first.

    All groups of a call together read at most `most_rows` rows. A group that does not fit waits
    until its segments are dead. Where the cell is FOREVER they never are: such a group is taken
    alone.
    """
    if len(segments) != len(live_rows):
        raise ValueError(f"{len(segments)} segments but {len(live_rows)} counts of live rows")
    budget = most_rows
    taken: list[tuple[int, int]] = []

    def take(start: int, stop: int) -> None:
        nonlocal budget
        rows = sum(segment.rows for segment in segments[start:stop])
        free = all(stop <= a or b <= start for a, b in taken)
        fits = rows <= budget or (cell == FOREVER and not taken)
        # Overlapping groups would rewrite a row twice, and `replace` could not place the second.
        if fits and free and len(taken) < most_groups:
            budget -= rows
            taken.append((start, stop))

    tiers = [_tier(live) for live in live_rows]
    for first, last in _stretches(segments, cell):
        for start, stop in _runs(tiers[first:last]):
            take(first + start, _fitting(segments, first + start, first + stop, budget))
    if not taken and len(segments) > most_segments:
        totals = [sum(live_rows[i : i + FANIN]) for i in range(len(segments) - FANIN + 1)]
        cheapest = int(np.argmin(totals))
        take(cheapest, cheapest + FANIN)
    for index in _worst_first(segments, live_rows, dead_share):
        take(index, index + 1)
    return tuple(tuple(segments[a:b]) for a, b in sorted(taken))


def compact(
    store: Store,
    group: Sequence[Segment],
    name: str,
    live: Live,
    order: str,
    tag: Callable[[pa.Table], int],
    arrange: Callable[[pa.Table], pa.Table] | None = None,
    grouped: bool = True,
    columns: Sequence[str] | None = None,
    absent: Absent | None = None,
) -> Segment | None:
    """Write the live rows of a group, oldest segment first, as one segment; None if there are none.

    Rows with equal (bucket, order) keep the order of their segments and, within one, their own.
    Values are copied, never combined, so no result depends on when compaction happens. The files of
    the group stay until no kept manifest lists them, because a crash may go back to one that does.
    All segments of a group have one schema, or at least the `columns`, which are then all that is
    kept; `absent` gives those that a segment lacks. `arrange` sorts the rows, by (bucket, order)
    unless given; `tag` gives the segment's tag; `grouped` is as in `write_segment`.
    """
    parts = []
    for segment in group:
        rows = read_segment(store, segment, columns=columns, absent=absent)
        parts.append(rows.filter(pa.array(live(rows, segment), type=pa.bool_())))
    table = pa.concat_tables(parts)
    if table.num_rows == 0:
        return None
    rows = by_bucket(table, order) if arrange is None else arrange(table)
    return write_segment(store, name, rows, order, tag(rows), grouped)


def replace(
    segments: Sequence[Segment], group: Sequence[Segment], compacted: Segment | None
) -> tuple[Segment, ...]:
    """The list of segments after the compaction of a group, which must be neighbours in it."""
    names = [segment.name for segment in segments]
    start = names.index(group[0].name)
    stop = start + len(group)
    if tuple(segments[start:stop]) != tuple(group):
        raise ValueError(f"{[s.name for s in group]} are not neighbours in {names}")
    return replace_any(segments, group, compacted)


def replace_any(
    segments: Sequence[Segment], group: Sequence[Segment], compacted: Segment | None
) -> tuple[Segment, ...]:
    """As `replace`, for a group with others in between, where the order does not count."""
    names = {segment.name for segment in group}
    kept: list[Segment] = []
    for segment in segments:
        if segment.name not in names:
            kept.append(segment)
        elif segment.name == group[0].name and compacted is not None:
            kept.append(compacted)
    return tuple(kept)


def by_bucket(table: pa.Table, order: str) -> pa.Table:
    """Rows sorted by (bucket, order); equal ones keep their order."""
    keys = [whole_numbers(table[column]) for column in (order, "bucket")]
    return gathered(table, np.lexsort(keys))  # lexsort is stable


def _tier(rows: int) -> int:
    return max(rows, 1).bit_length() // 2  # FANIN is 4: two bits per tier


def _stretches(segments: Sequence[Segment], cell: int | None) -> Iterator[tuple[int, int]]:
    """Stretches [first, last) of segments that may be merged: all, or those of one cell."""
    if cell is None:
        yield 0, len(segments)
        return
    start = 0
    cells = [(s.low // cell, s.high // cell) for s in segments]
    for index in range(1, len(segments) + 1):
        if index == len(segments) or cells[index] != cells[start]:
            if cells[start][0] == cells[start][1]:
                yield start, index
            start = index


def _runs(tiers: Sequence[int]) -> list[tuple[int, int]]:
    """Maximal runs of tiers up to t with at least FANIN of tier t; small tiers first.

    So the many small segments of recent batches are merged before large ones are rewritten.
    """
    found = []
    for tier in sorted(set(tiers)):
        start, count = 0, 0
        # The sentinel at the end is larger than the tier, so that the last run is closed, too.
        for index, other in enumerate([*tiers, tier + 1]):
            if other > tier:
                if count >= FANIN:
                    found.append((start, index))
                start, count = index + 1, 0
            count += other == tier
    return found


def _fitting(segments: Sequence[Segment], start: int, stop: int, most_rows: int) -> int:
    """Where a run must end for its rows to fit; `stop` itself if fewer than FANIN would be left."""
    rows = np.cumsum([segment.rows for segment in segments[start:stop]])
    fits = int(np.searchsorted(rows, most_rows, side="right"))
    return start + fits if fits >= FANIN else stop


def _worst_first(
    segments: Sequence[Segment], live_rows: Sequence[int], most_dead: float
) -> list[int]:
    dead = [1 - live / max(s.rows, 1) for s, live in zip(segments, live_rows, strict=True)]
    worth = [i for i, share in enumerate(dead) if share > most_dead]
    return sorted(worth, key=lambda i: (-dead[i], i))
