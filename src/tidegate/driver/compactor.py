"""Compaction beside the loop: small or half-dead segments are rewritten while batches go on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from itertools import pairwise

from tidegate.driver.beside import beside
from tidegate.errors import StateError
from tidegate.execute.retention import Horizon, Keeper
from tidegate.state.compaction import choose, compact, replace, replace_any
from tidegate.state.segment import Segment, read_segment
from tidegate.state.store import Store

Rewrite = tuple[tuple[Segment, ...], Segment | None]


class Compactor:
    """Rewrites segments in a thread; the loop puts the result into the next manifest.

    Rows keep their order and no arithmetic happens, so results do not depend on when it runs.
    """

    def __init__(self, store: Store, keeper: Keeper, label: str = "compact") -> None:
        self._store = store
        self._keeper = keeper
        self._label = label
        self._running: Future[list[Rewrite]] | None = None
        self._considered: tuple[Segment, ...] = ()
        self._placed: list[Segment | None] = []
        """What `apply` put into the state of the batch that is running."""

    def live(self, segments: Sequence[Segment], frontier_us: int, tuples: int = 0) -> list[Segment]:
        """The segments that hold a row some window may still need."""
        horizon = self._keeper.horizon(frontier_us, tuples, segments)
        return [s for s in segments if not horizon.passed(s)]

    def consider(
        self,
        batch: int,
        segments: Sequence[Segment],
        frontier_us: int,
        tuples: int = 0,
        owners: Sequence[int] = (),
    ) -> None:
        """Start rewriting where it is worth it; at most one piece of work is under way."""
        if self._running is not None or not segments:
            return
        horizon = self._keeper.horizon(frontier_us, tuples, segments)
        self._considered = tuple(segments)
        work = partial(self._rewrite, batch, self._considered, horizon, tuple(owners))
        self._running = beside("tidegate-compact", work)

    def apply(self, segments: Sequence[Segment]) -> tuple[Segment, ...]:
        """The same state with finished rewrites in place; called before a batch is planned."""
        current = tuple(segments)
        if self._running is None or not self._running.done():
            return current
        running, self._running = self._running, None
        failure = running.exception()
        if failure is not None:
            if all(s in current for s in self._considered):
                raise failure
            return current  # what it read was purged meanwhile
        for group, made in running.result():
            if all(s in current for s in group):
                put = replace if self._keeper.grouped else replace_any
                current = put(current, group, made)
                self._placed.append(made)
            else:
                self._remove([made])
        return current

    def settle(self, segments: Sequence[Segment]) -> None:
        """After a commit that lists these segments: remove rewrites that it had no use for."""
        listed = {s.name for s in segments}
        self._remove(s for s in self._placed if s is not None and s.name not in listed)
        self._placed = []

    def wait(self) -> None:
        """Block until the work under way is done; the next `apply` puts the result in place."""
        if self._running is not None:
            wait([self._running])

    def close(self) -> None:
        """Wait for the work under way and remove what no manifest will ever list."""
        self.wait()
        running, self._running = self._running, None
        if running is not None and running.exception() is None:
            with suppress(StateError):  # an orphan then, and the next start removes it
                self._remove(made for _, made in running.result())

    def _remove(self, segments: Iterable[Segment | None]) -> None:
        for segment in segments:
            if segment is not None:
                self._store.delete(segment.path)

    def _rewrite(
        self,
        batch: int,
        segments: tuple[Segment, ...],
        horizon: Horizon,
        owners: tuple[int, ...],
    ) -> list[Rewrite]:
        keeper = self._keeper
        done: list[Rewrite] = []
        try:
            for group in self._groups(segments, horizon, owners):
                made = compact(
                    self._store,
                    group,
                    f"{batch:08d}-{self._label}-{len(done):02d}",
                    horizon.live,
                    keeper.order,
                    horizon.sealed,
                    keeper.arrange,
                    keeper.grouped,
                )
                done.append((group, made))
        except Exception:
            self._remove(made for _, made in done)
            raise
        return done

    def _groups(
        self, segments: tuple[Segment, ...], horizon: Horizon, owners: tuple[int, ...]
    ) -> Iterator[tuple[Segment, ...]]:
        counts = []
        for segment in segments:
            count = segment.rows
            if not horizon.whole(segment):
                columns = list(dict.fromkeys(("bucket", self._keeper.order)))
                rows = read_segment(self._store, segment, columns=columns)
                count = int(horizon.live(rows, segment).sum())
            counts.append(count)
        kin = self._keeper.kin(segments, owners)
        for one in sorted({k for k in kin if k is not None}):
            mine = [i for i, other in enumerate(kin) if other == one]
            groups = choose(
                [segments[i] for i in mine],
                [counts[i] for i in mine],
                cell=self._keeper.cell,
                dead_share=self._keeper.dead_share,
            )
            yield from (g for g in groups if self._keeper.grouped or _in_sequence(g))


def _in_sequence(group: Sequence[Segment]) -> bool:
    """Whether segments follow each other; after a switch some of one instance are side by side."""
    return all(a.high < b.low for a, b in pairwise(group))
