"""Compacts segments beside the loop: rewrites small or half-dead ones while batches go on."""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tidegate import schedule
from tidegate.batch import MIN_US, ORDER, ints
from tidegate.errors import StateError
from tidegate.execute.runner import JobRunner
from tidegate.memory import ANY, Allowance
from tidegate.operate.keeper import Horizon, Keeper
from tidegate.schedule import beside
from tidegate.state.handle import StoreHandle
from tidegate.state.name import owned
from tidegate.state.segment.compaction import choose, compact, replace, replace_any
from tidegate.state.segment.segment import Segment, read_segment
from tidegate.state.store import Store

TASK_ROWS = 262_144
TASK_BYTES = 32 * 2**20
"""A group of at least so many rows or bytes is rewritten by a task, not in the driver's memory."""

FEW_SEGMENTS, FEW_ROWS = 12, 4_096
"""Fewer new segments with fewer rows wait for more: a look at all segments would cost a small batch
more than it gains."""

Group = tuple[Segment, ...]
Rewrite = tuple[Group, Segment | None]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SegmentRewrite:
    """One group of segments to rewrite as the segment `name`; run by a thread or by a task."""

    store: StoreHandle
    keeper: Keeper
    horizon: Horizon
    group: Group
    name: str
    memory: Allowance

    @property
    def is_large(self) -> bool:
        rows, size = sum(s.rows for s in self.group), sum(s.bytes for s in self.group)
        return rows >= TASK_ROWS or size >= TASK_BYTES

    def run(self) -> Segment | None:
        """Write the segment of the group's live rows; None if there are none."""
        self.memory.take()
        return compact(
            self.store.open(),
            self.group,
            self.name,
            self.horizon.live,
            order=self.keeper.order,
            tag=partial(self.keeper.tag_of, horizon=self.horizon),
            arrange=self._arranged,
            grouped=self.keeper.grouped,
            columns=self.keeper.columns,
            absent=self.keeper.absent,
        )

    def _arranged(self, rows: pa.Table) -> pa.Table:
        if not self.keeper.grouped and not _in_sequence(self.group):
            # After a switch, segments of one instance may cover the same times, so that putting
            # them one behind the other breaks the order. Ungrouped rows are tuples: sort them into
            # the total order, on which the order of equal rows in the output depends.
            rows = rows.take(pa.array(np.lexsort([ints(rows, c) for c in reversed(ORDER)])))
        return self.keeper.arrange(rows)


@dataclass(eq=False)
class _Piece:
    """The work of one thread: choose groups among the `considered` segments and rewrite them.

    If one of its groups is large, the work takes long. `large` then has the names of all segments
    that it rewrites; else it is None.
    """

    considered: tuple[Segment, ...]
    running: Future[list[Rewrite]] = field(init=False)
    large: frozenset[str] | None = None


class Compactor:
    """Rewrites segments in a thread; the loop puts the result into the next manifest.

    Rewriting keeps the order of rows and computes nothing. So the results of the query do not
    depend on when or where it runs. Tasks rewrite large groups; if a task dies, its group stays as
    it was, and a later batch chooses again. While a large group is rewritten, a second thread keeps
    compacting small new segments: otherwise they would pile up, and an instance that takes buckets
    over would have to open them all. The loop's thread calls the public methods.
    """

    def __init__(
        self,
        store: Store,
        keeper: Keeper,
        label: str = "compact",
        memory: Allowance = ANY,
    ) -> None:
        self._store = store
        self._keeper = keeper
        self._label = label
        self._memory = memory
        self._pieces: list[_Piece] = []
        """At most two: one with a large group, and one without."""
        self._seen: frozenset[str] = frozenset()
        """The names of the segments at the last look."""
        self._placed: list[Segment | None] = []
        """The rewritten segments that `apply` put into the state of the current batch."""
        self._removals: deque[Future[None]] = deque()

    def live(self, segments: Sequence[Segment], frontier_us: int, tuples: int = 0) -> list[Segment]:
        """The segments with a row that some window may still need."""
        horizon = self._keeper.horizon(frontier_us, tuples, segments)
        return [s for s in segments if not horizon.passed(s)]

    def is_due(self, segments: Sequence[Segment]) -> bool:
        """Whether enough segments or rows are new since the last look."""
        new = [s.rows for s in segments if s.name not in self._seen]
        return len(new) >= FEW_SEGMENTS or sum(new) >= FEW_ROWS

    def consider(
        self,
        batch: int,
        segments: Sequence[Segment],
        frontier_us: int,
        tuples: int = 0,
        owners: Sequence[int] = (),
        runner: JobRunner | None = None,
        since: int = MIN_US,
    ) -> None:
        """Start a thread that rewrites what is worth it; segments being rewritten are left out.

        Without a runner this process does all of the work. State below `since` (a time, or a number
        of tuples) may still be with other owners than `owners`.
        """
        if not segments or not self._may_begin():
            return
        self._seen = frozenset(s.name for s in segments)
        busy = frozenset[str]().union(*(piece.large or () for piece in self._pieces))
        piece = _Piece(tuple(s for s in segments if s.name not in busy))
        # The thread itself finds out what is still needed: that costs a look at every segment.
        horizon = partial(self._keeper.horizon, frontier_us, tuples, piece.considered)
        alike = partial(self._keeper.kin, piece.considered, owners, since)
        small = bool(self._pieces)
        work = partial(self._rewrite, piece, batch, horizon, alike, runner, small)
        running = beside("tidegate-compact", work)
        if running is not None:
            piece.running = running
            self._pieces.append(piece)

    def _may_begin(self) -> bool:
        """Whether another thread may start: none runs, or just one that rewrites a large group.

        If the order of segments counts (`grouped`), there is room for one only: segments on the two
        sides of a group under way are no neighbours.
        """
        if not self._pieces:
            return True
        first, *others = self._pieces
        return first.large is not None and not others and not self._keeper.grouped

    def apply(self, segments: Sequence[Segment]) -> tuple[Segment, ...]:
        """The segments with finished rewrites in place; called before a batch is drafted."""
        while self._removals and self._removals[0].done():
            self._removals.popleft().result()
        current = tuple(segments)
        for piece in [piece for piece in self._pieces if piece.running.done()]:
            self._pieces.remove(piece)
            current = self._with(piece, current)
        return current

    def _with(self, piece: _Piece, current: tuple[Segment, ...]) -> tuple[Segment, ...]:
        """The segments with the results of one thread in place."""
        failure = piece.running.exception()
        if failure is not None:
            if all(s in current for s in piece.considered):
                raise failure
            return current  # it read a segment that has been deleted meanwhile
        for group, made in piece.running.result():
            # Batches went on meanwhile. If one of them dropped a segment of the group, the rewrite
            # would bring its rows back.
            if all(s in current for s in group):
                put = replace if self._keeper.grouped else replace_any
                current = put(current, group, made)
                self._placed.append(made)
            else:
                self._remove_later([made])
        return current

    def settle(self, segments: Sequence[Segment]) -> None:
        """Remove rewrites that the committed manifest does not list."""
        if self._placed:
            listed = {s.name for s in segments}
            self._remove_later([s for s in self._placed if s is not None and s.name not in listed])
        self._placed = []

    def wait(self) -> None:
        """Block until all threads are done; the next `apply` puts their results in place."""
        schedule.wait([*self._removals, *(piece.running for piece in self._pieces)])

    def close(self) -> None:
        """Wait for all threads and remove their results, which no manifest will list."""
        self.wait()
        pieces, self._pieces = self._pieces, []
        for piece in pieces:
            if piece.running.exception() is None:
                with suppress(StateError):  # the next start removes an orphan
                    self._remove(made for _, made in piece.running.result())

    def _remove_later(self, segments: Sequence[Segment | None]) -> None:
        """Let a thread delete files; a later `apply` raises its error."""
        if not segments:
            return
        removal = beside("tidegate-remove", partial(self._remove, segments))
        if removal is None:
            self._remove(segments)
        else:
            self._removals.append(removal)

    def _remove(self, segments: Iterable[Segment | None]) -> None:
        for segment in segments:
            if segment is not None:
                self._store.delete(segment.path)

    def _rewrite(
        self,
        piece: _Piece,
        batch: int,
        horizon_of: Callable[[], Horizon],
        alike: Callable[[], list[int | None]],
        runner: JobRunner | None,
        small: bool,
    ) -> list[Rewrite]:
        """Choose groups and rewrite them; with `small`, leave out large groups."""
        horizon = horizon_of()
        works = [
            SegmentRewrite(
                store=self._store.handle(),
                keeper=self._keeper,
                horizon=horizon,
                group=group,
                name=f"{owned(batch, self._store.owner)}-{self._label}-{number:02d}",
                memory=self._memory,
            )
            for number, group in enumerate(self._groups(piece.considered, horizon, alike()))
        ]
        if small:
            works = [work for work in works if not work.is_large]
        elif any(work.is_large for work in works):
            piece.large = frozenset(s.name for work in works for s in work.group)
        # Start tasks first: they run while this thread rewrites the small groups.
        tasks = {
            work.name: runner.submit(work.run)
            for work in works
            if runner is not None and work.is_large
        }
        done: list[Rewrite] = []
        failures: list[Exception] = []
        for work in works:
            try:
                made = tasks[work.name].result() if work.name in tasks else work.run()
                done.append((work.group, made))
            except BrokenExecutor as error:
                _log.warning("%s: its segments stay as they are: %s", work.name, error)
            except Exception as error:
                failures.append(error)
        if failures:
            self._remove(made for _, made in done)
            raise failures[0]
        return done

    def _groups(
        self, segments: Sequence[Segment], horizon: Horizon, alike: Sequence[int | None]
    ) -> Iterator[Group]:
        kin: defaultdict[int, list[Segment]] = defaultdict(list)
        for segment, number in zip(segments, alike, strict=True):
            if number is not None:
                kin[number].append(segment)
        for number in sorted(kin):
            yield from choose(
                kin[number],
                [self._live_rows(s, horizon) for s in kin[number]],
                cell=self._keeper.cell,
                dead_share=self._keeper.dead_share,
            )

    def _live_rows(self, segment: Segment, horizon: Horizon) -> int:
        """The number of live rows of a segment; reads it only if its bounds do not say."""
        if horizon.whole(segment):
            return segment.rows
        columns = list(dict.fromkeys(("bucket", self._keeper.order, *self._keeper.dies_by)))
        rows = read_segment(self._store, segment, columns=columns)
        return int(horizon.live(rows, segment).sum())


def _in_sequence(group: Sequence[Segment]) -> bool:
    """Whether each segment ends before the next one begins."""
    return all(a.high < b.low for a, b in pairwise(group))
