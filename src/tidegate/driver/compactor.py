"""Compaction beside the loop: small or half-dead segments are rewritten while batches go on."""

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
from tidegate.state.compaction import choose, compact, replace, replace_any
from tidegate.state.handle import StoreHandle
from tidegate.state.name import owned
from tidegate.state.segment import Segment, read_segment
from tidegate.state.store import Store

TASK_ROWS = 262_144
TASK_BYTES = 32 * 2**20
"""Groups with as many rows or bytes are rewritten by a task, and take no memory of the driver."""

FEW_SEGMENTS, FEW_ROWS = 12, 4_096
"""Fewer new segments with fewer rows are left until there are more: to look at them all costs a
small batch more than it gains."""

Group = tuple[Segment, ...]
Rewrite = tuple[Group, Segment | None]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SegmentRewrite:
    """One group to be rewritten as the segment `name`, by a thread of the driver or by a task."""

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
        """The segment of the group's live rows, written by this process; None without any."""
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
            # After a switch some segments of one instance are side by side. Rows that are not
            # sorted by bucket are tuples; where they are equal, they are to be in the total order.
            rows = rows.take(pa.array(np.lexsort([ints(rows, c) for c in reversed(ORDER)])))
        return self.keeper.arrange(rows)


@dataclass(eq=False)
class _Piece:
    """What one thread is at: to choose among the segments that were `considered`, and to rewrite.

    `large` are the names of all segments that it rewrites, once it knows that there is a large
    group among them; then it takes long.
    """

    considered: tuple[Segment, ...]
    running: Future[list[Rewrite]] = field(init=False)
    large: frozenset[str] | None = None


class Compactor:
    """Rewrites segments in a thread; the loop puts the result into the next manifest.

    Rows keep their order and no arithmetic happens, so results do not depend on when it runs, or
    where: large groups are rewritten by tasks. A task that dies leaves its group as it was, for a
    later batch to choose again. While a large group is rewritten, the small segments of new batches
    are not left to pile up: who takes buckets over would have to open them all.
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
        """What was there when it looked last."""
        self._placed: list[Segment | None] = []
        """What `apply` put into the state of the batch that is running."""
        self._removals: deque[Future[None]] = deque()

    def live(self, segments: Sequence[Segment], frontier_us: int, tuples: int = 0) -> list[Segment]:
        """The segments that hold a row some window may still need."""
        horizon = self._keeper.horizon(frontier_us, tuples, segments)
        return [s for s in segments if not horizon.passed(s)]

    def is_due(self, segments: Sequence[Segment]) -> bool:
        """Whether there is enough that was not there when it looked last."""
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
        """Start rewriting where it is worth it; what is under way is not looked at again.

        Without a runner this process does all of it. What is stored below `since`, a time or
        a number of tuples, is not all with these `owners`.
        """
        if not segments or not self._may_begin():
            return
        self._seen = frozenset(s.name for s in segments)
        busy = frozenset[str]().union(*(piece.large or () for piece in self._pieces))
        piece = _Piece(tuple(s for s in segments if s.name not in busy))
        # What is needed is found by the thread as well: it costs a look at every segment.
        horizon = partial(self._keeper.horizon, frontier_us, tuples, piece.considered)
        alike = partial(self._keeper.kin, piece.considered, owners, since)
        small = bool(self._pieces)
        work = partial(self._rewrite, piece, batch, horizon, alike, runner, small)
        running = beside("tidegate-compact", work)
        if running is not None:
            piece.running = running
            self._pieces.append(piece)

    def _may_begin(self) -> bool:
        """Whether nothing is under way, or one that takes long and leaves room beside it.

        Where the order of segments counts there is none: those around it are not neighbours.
        """
        if not self._pieces:
            return True
        first, *others = self._pieces
        return first.large is not None and not others and not self._keeper.grouped

    def apply(self, segments: Sequence[Segment]) -> tuple[Segment, ...]:
        """The same state with finished rewrites in place; called before a batch is planned."""
        while self._removals and self._removals[0].done():
            self._removals.popleft().result()
        current = tuple(segments)
        for piece in [piece for piece in self._pieces if piece.running.done()]:
            self._pieces.remove(piece)
            current = self._with(piece, current)
        return current

    def _with(self, piece: _Piece, current: tuple[Segment, ...]) -> tuple[Segment, ...]:
        """The same state with what a piece of work has made."""
        failure = piece.running.exception()
        if failure is not None:
            if all(s in current for s in piece.considered):
                raise failure
            return current  # what it read was purged meanwhile
        for group, made in piece.running.result():
            if all(s in current for s in group):
                put = replace if self._keeper.grouped else replace_any
                current = put(current, group, made)
                self._placed.append(made)
            else:
                self._remove_later([made])
        return current

    def settle(self, segments: Sequence[Segment]) -> None:
        """After a commit that lists these segments: remove rewrites that it had no use for."""
        if self._placed:
            listed = {s.name for s in segments}
            self._remove_later([s for s in self._placed if s is not None and s.name not in listed])
        self._placed = []

    def wait(self) -> None:
        """Block until the work under way is done; the next `apply` puts the result in place."""
        schedule.wait([*self._removals, *(piece.running for piece in self._pieces)])

    def close(self) -> None:
        """Wait for the work under way and remove what no manifest will ever list."""
        self.wait()
        pieces, self._pieces = self._pieces, []
        for piece in pieces:
            if piece.running.exception() is None:
                with suppress(StateError):  # an orphan then, and the next start removes it
                    self._remove(made for _, made in piece.running.result())

    def _remove_later(self, segments: Sequence[Segment | None]) -> None:
        """Let a thread delete files; the next `apply` tells where that fails."""
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
        """Choose groups and rewrite them, `small` ones only where a large one is under way."""
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
        # Tasks are started first: they run while this thread does the rest.
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
        """How many rows of a segment are needed; reads it where its bounds do not tell."""
        if horizon.whole(segment):
            return segment.rows
        columns = list(dict.fromkeys(("bucket", self._keeper.order, *self._keeper.dies_by)))
        rows = read_segment(self._store, segment, columns=columns)
        return int(horizon.live(rows, segment).sum())


def _in_sequence(group: Sequence[Segment]) -> bool:
    """Whether segments follow each other."""
    return all(a.high < b.low for a, b in pairwise(group))
