"""The handshake join beside ours: comparisons a second by instances, figure 6 of ScaleJoin.

    python benchmarks/handshake.py --cores 16 --instances 1,4,16
    python benchmarks/handshake.py --instances 1,2 --share 0.02    a quick look

Both join the streams of `join_scan.py`, which has ours: exhaustive comparison, end to end on Spark.
The handshake join here is a reference for this benchmark alone. Its nodes stand in a row, a thread
each. R enters at one end of the row and S at the other, a block at a time; they move towards each
other, and a block is compared with what a node holds of the other stream when it arrives. So every
pair meets once, at whichever node. Nodes compare with the compiled loop of ours. They hold columns
in memory, write nothing, count matches instead of putting them out, and keep no order, which ours
does all of: what it shows is how far such a row scales.

Comparisons are those of tuples at most a window apart, once the windows are full. Both must find as
many pairs as are counted without them. Results go to benchmarks/results/handshake-sweep.json.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Any

import numpy as np
from count import Array, band_pairs, columns, kept, near_pairs
from data import BAND_COLUMNS, write_band
from join_scan import BAND, CASES, Case, measured
from measure import CORES, check_count, common_arguments, give, in_child
from sweep import sweep_arguments, swept

from tidegate.operate.kernels.join.pair import find

CASE, BLOCK_ROWS, AHEAD = "sparse", 1_000, 4
"""The case of `join_scan.py`, rows of a block, and how many blocks wait before a node at an end."""
LIMIT_S = 60.0
"""So long a node may take with a block, or to end: one that failed takes for ever."""


@dataclass(frozen=True)
class Block:
    """Rows of one stream in the order of their times."""

    ts: Array
    values: tuple[Array, Array]

    def __len__(self) -> int:
        return len(self.ts)

    def rows(self, first: int, last: int) -> Block:
        x, y = self.values
        return Block(self.ts[first:last], (x[first:last], y[first:last]))


class Held:
    """What a node holds of one stream: rows that came, without the oldest, which left again.

    `left` of them have been passed on, and not all nodes know of it yet.
    """

    def __init__(self, room: int) -> None:
        self._all = Block(np.empty(room, np.int64), (_floats(room), _floats(room)))
        self._first = self._end = self.left = 0

    @property
    def now(self) -> Block:
        return self._all.rows(self._first, self._end)

    @property
    def staying(self) -> int:
        return self._end - self._first - self.left

    def add(self, block: Block) -> None:
        """At the end; the others move to the beginning where there is no room."""
        if self._end + len(block) > len(self._all):
            kept = self.now
            rows = len(kept)
            room = 2 * (rows + len(block))
            larger = Held(room) if room > len(self._all) else self
            _copy(kept, larger._all, 0)
            self._all, self._first, self._end = larger._all, 0, rows
        _copy(block, self._all, self._end)
        self._end += len(block)

    def oldest(self, rows: int) -> Block:
        """A copy of the oldest that stay, which then have left."""
        first = self._first + self.left
        self.left += rows
        of = self._all.rows(first, first + rows)
        return Block(of.ts.copy(), (of.values[0].copy(), of.values[1].copy()))

    def forget(self, rows: int) -> None:
        """The oldest, which have left."""
        self._first += rows
        self.left -= rows

    def expire(self, before_us: int) -> None:
        """Those that are older, where none are passed on."""
        self._first += int(np.searchsorted(self.now.ts, before_us))


def _floats(rows: int) -> Array:
    return np.empty(rows, np.float32)


def _copy(block: Block, to: Block, place: int) -> None:
    for of, into in zip((block.ts, *block.values), (to.ts, *to.values), strict=True):
        into[place : place + len(block)] = of


@dataclass
class Node(Thread):
    """One core of the row: it takes messages in their order, so that a pair meets exactly once.

    R is kept until the next node says that it has it, S is gone as soon as it is passed on. Of two
    blocks that cross between two nodes, the one of S then finds the other still there, or the one
    of R has come first.
    """

    window_us: int
    room: int
    r_next: Node | None = None
    s_next: Node | None = None
    inbox: SimpleQueue[tuple[str, Any]] = field(default_factory=SimpleQueue)
    taken: Semaphore = field(default_factory=lambda: Semaphore(AHEAD))
    compared: int = 0
    found: int = 0

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self.r, self.s = Held(2 * self.room), Held(2 * self.room)
        self._ends: set[str] = set()

    __hash__ = Thread.__hash__

    def run(self) -> None:
        while True:
            kind, given = self.inbox.get()
            if kind == "stop":
                break
            getattr(self, f"_on_{kind}")(given)
        if self.s_next is not None:
            self.s_next.inbox.put(("stop", None))

    def _on_r(self, block: Block) -> None:
        self._meet(block, self.s.now)
        self.r.add(block)
        if self.s_next is None:
            self.taken.release()
            self.s.expire(int(block.ts[-1]) - self.window_us)
        else:
            self.s_next.inbox.put(("known", len(block)))
        self._pass_r(self.room)

    def _on_s(self, block: Block) -> None:
        self._meet(block, self.r.now)
        self.s.add(block)
        if self.r_next is None:
            self.taken.release()
            self.r.expire(int(block.ts[-1]) - self.window_us)
        if self.s_next is not None and (rows := self.s.staying - self.room) > 0:
            self.s_next.inbox.put(("s", self.s.oldest(rows)))
            self.s.forget(rows)

    def _on_known(self, rows: int) -> None:
        self.r.forget(rows)

    def _on_end(self, stream: str) -> None:
        """R is over: all of it moves on. The last node stops when S is over too."""
        self._ends.add(stream)
        if stream == "r":
            self._pass_r(0)
        if self.r_next is not None:
            self.r_next.inbox.put(("end", stream))
        elif self._ends == {"r", "s"}:
            self.inbox.put(("stop", None))

    def _pass_r(self, room: int) -> None:
        if self.r_next is not None and (rows := self.r.staying - room) > 0:
            self.r_next.inbox.put(("r", self.r.oldest(rows)))

    def _meet(self, block: Block, held: Block) -> None:
        first = np.searchsorted(held.ts, block.ts - self.window_us, "left")
        last = np.searchsorted(held.ts, block.ts + self.window_us, "right")
        self.compared += int((last - first).sum())
        lows = [of - np.float32(BAND) for of in block.values]
        highs = [of + np.float32(BAND) for of in block.values]
        self.found += len(find(first, last, lows, highs, held.values)[0])


def row_of(nodes: int, window_rows: int, window_us: int) -> list[Node]:
    """Nodes that know their neighbours; each holds its part of a window of both streams."""
    row = [Node(window_us, max(window_rows // nodes, 1)) for _ in range(nodes)]
    for left, right in pairwise(row):
        left.r_next, right.s_next = right, left
    return row


def joined(case: Case, r: Block, s: Block, nodes: int) -> dict[str, float]:
    """Both streams through a row of nodes, side by side, as fast as it takes them."""
    row = row_of(nodes, case.window_rows, case.window_us)
    for node in row:
        node.start()
    full = (0, time.perf_counter())
    for first in range(0, case.rows, BLOCK_ROWS):
        if first >= case.window_rows > first - BLOCK_ROWS:
            full = (sum(node.compared for node in row), time.perf_counter())
        for stream, block, node in (("r", r, row[0]), ("s", s, row[-1])):
            if not node.taken.acquire(timeout=LIMIT_S):
                raise SystemExit(f"handshake: a block must be taken within {LIMIT_S} s; got none.")
            node.inbox.put((stream, block.rows(first, first + BLOCK_ROWS)))
    row[0].inbox.put(("end", "r"))
    row[-1].inbox.put(("end", "s"))
    for node in row:
        node.join(LIMIT_S)
    if any(node.is_alive() for node in row):
        raise SystemExit(f"handshake: all nodes must end within {LIMIT_S} s; some did not.")
    compared, seconds = sum(node.compared for node in row), time.perf_counter() - full[1]
    return {
        "comparisons_per_second": (compared - full[0]) / seconds,
        "comparisons": compared,
        "rows_out": sum(node.found for node in row),
    }


def block_of(folder: Path, side: str) -> Block:
    """All of one stream."""
    ts, *values = columns(folder / f"{side}.parquet", *BAND_COLUMNS[side][1:])
    x, y = (of.astype(np.float32) for of in values)
    return Block(ts, (x, y))


def child(arguments: argparse.Namespace) -> None:
    """One run in the process made for it."""
    case, folder = CASES[arguments.child].part(arguments.share), Path(arguments.data)
    sides = [block_of(folder, side) for side in "rs"]
    some = replace(case, window_rows=min(BLOCK_ROWS, case.window_rows), batch_rows=1)
    joined(some, *sides, nodes=1)  # what is compiled is there from now on
    give(joined(case, *sides, nodes=arguments.instances[0]))


def handshake(data: Path, share: float, instances: int, cores: int) -> dict[str, Any]:
    """One run, checked."""
    case = CASES[CASE].part(share)
    folder = data / f"band-{case.rows}-{case.per_second}-{case.domain}"
    write_band(folder, case.rows, case.per_second, case.domain)
    options = ("--child", CASE, "--data", str(folder), "--share", str(share))
    did: dict[str, Any] = in_child(__file__, *options, instances=instances, cores=cores)
    us = case.window_us
    pairs = kept(folder, f"{us}", lambda: band_pairs(folder, us, BAND, BAND))
    check_count(f"handshake, {instances}", pairs, did["rows_out"])
    check_count(f"handshake, {instances}, compared", near_pairs(folder, us), did["comparisons"])
    return did


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the rows")
    common_arguments(parser, rounds=1)
    sweep_arguments(parser, [1, CORES])
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    given = (Path(arguments.data), arguments.share)
    cases = {"ours": partial(measured, CASE, *given), "handshake": partial(handshake, *given)}
    swept("handshake", cases, arguments, "comparisons_per_second", "comparisons/s")


if __name__ == "__main__":
    main()
