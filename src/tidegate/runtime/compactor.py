"""Compaction beside the loop: small or half-dead segments are rewritten while batches go on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.errors import StateError
from tidegate.operate.aggregate import AggregateSpec, needed_from, sealed_before
from tidegate.state.compaction import choose, compact, replace
from tidegate.state.segment import Segment, read_segment
from tidegate.state.store import Store

Rewrite = tuple[tuple[Segment, ...], Segment | None]


@dataclass(frozen=True)
class Horizon:
    """Which rows of which segments a frontier has left behind.

    Of a segment's rows, those in panes below its `sealed` are complete panes, needed while a window
    over them is open; the others are partials, needed until their pane is complete.
    """

    needed: int
    sealed: int

    @staticmethod
    def at(spec: AggregateSpec, frontier_us: int) -> Horizon:
        return Horizon(needed_from(spec, frontier_us), sealed_before(spec, frontier_us))

    def live(self, rows: pa.Table, segment: Segment) -> npt.NDArray[np.bool_]:
        """Which rows of a segment are still needed."""
        pane: npt.NDArray[Any] = rows.column("pane").to_numpy()
        return np.where(pane < segment.sealed, pane >= self.needed, pane >= self.sealed)

    def passed(self, segment: Segment) -> bool:
        """Whether no row of a segment can be needed any more, told from its bounds alone."""
        complete_until = min(segment.high, segment.sealed - 1)
        no_complete = segment.low >= segment.sealed or complete_until < self.needed
        no_partial = segment.high < segment.sealed or segment.high < self.sealed
        return no_complete and no_partial


class Compactor:
    """One thread that rewrites segments; the loop puts the result into the next manifest.

    Rows keep their order and no arithmetic happens, so results do not depend on when it runs.
    """

    def __init__(self, store: Store, spec: AggregateSpec | None) -> None:
        self._store = store
        self._spec = spec
        self._pool = ThreadPoolExecutor(1, "tidegate-compact") if spec else None
        self._running: Future[list[Rewrite]] | None = None
        self._considered: tuple[Segment, ...] = ()
        self._placed: list[Segment | None] = []
        """What `apply` put into the state of the batch that is running."""

    def live(self, segments: Sequence[Segment], frontier_us: int) -> list[Segment]:
        """The segments that hold a row some window may still need."""
        if self._spec is None:
            return list(segments)
        horizon = Horizon.at(self._spec, frontier_us)
        return [s for s in segments if not horizon.passed(s)]

    def consider(self, batch: int, segments: Sequence[Segment], frontier_us: int) -> None:
        """Start rewriting where it is worth it; at most one piece of work is under way."""
        if self._pool is None or self._spec is None or self._running is not None or not segments:
            return
        horizon = Horizon.at(self._spec, frontier_us)
        self._considered = tuple(segments)
        self._running = self._pool.submit(self._rewrite, batch, self._considered, horizon)

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
                current = replace(current, group, made)
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
        if self._pool is None:
            return
        self._pool.shutdown(wait=True)
        running, self._running = self._running, None
        if running is not None and running.exception() is None:
            with suppress(StateError):  # an orphan then, and the next start removes it
                self._remove(made for _, made in running.result())

    def _remove(self, segments: Iterable[Segment | None]) -> None:
        for segment in segments:
            if segment is not None:
                self._store.delete(segment.path)

    def _rewrite(
        self, batch: int, segments: tuple[Segment, ...], horizon: Horizon
    ) -> list[Rewrite]:
        counts = []
        for segment in segments:
            rows = read_segment(self._store, segment, columns=["pane"])
            counts.append(int(horizon.live(rows, segment).sum()))
        done: list[Rewrite] = []
        try:
            for number, group in enumerate(choose(segments, counts, cell=_cell(self._spec))):
                name = f"{batch:08d}-compact-{number:02d}"
                made = compact(self._store, group, name, horizon.live, "pane", horizon.sealed)
                done.append((group, made))
        except Exception:
            self._remove(made for _, made in done)
            raise
        return done


def _cell(spec: AggregateSpec | None) -> int:
    """An eighth of a window in panes: what dies within that may be merged."""
    assert spec is not None
    return max(spec.range_us // spec.pane_us // 8, 1)
