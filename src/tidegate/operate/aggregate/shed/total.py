"""Sheds to a total: a window keeps exactly its share of tuples, and drops groups if it must.

All groups of a window come to one instance. It divides the number of tuples that the window may
keep among its groups (`approx.quota`), and answers each group from that many of its candidates.
Groups that get none have no row; they and their tuples are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.approx.quota import quotas
from tidegate.operate.aggregate.answer import Channels
from tidegate.operate.aggregate.figures import merged_window
from tidegate.operate.aggregate.pane.pane import AggregateSpec, results_of
from tidegate.operate.aggregate.shed.candidates import first_rows, lowest_word
from tidegate.operate.aggregate.shed.figures import SHED_SHOWN, ShedAnswer, ShedWindows
from tidegate.operate.figures import ShownFigure, ToldWindow, Values
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import run_starts
from tidegate.operate.kernels.lists import list_sizes
from tidegate.operate.kernels.order import Ints, flat, integers
from tidegate.operate.operator import InstanceWork

DROPPED, DROPPED_TUPLES = "groups_dropped", "tuples_dropped"

TOTAL_SHOWN = (
    *SHED_SHOWN,
    ShownFigure(DROPPED, "groups dropped"),
    ShownFigure(DROPPED_TUPLES, "tuples of groups dropped"),
    ShownFigure("weight_dropped", "their weight", "share", brief=True),
)


@dataclass(frozen=True)
class TotalAnswer(ShedAnswer):
    """A shed answer that keeps a share of all tuples of a window, and drops groups if it must."""

    together: ClassVar[bool] = True
    piecewise: ClassVar[bool] = False
    shown: ClassVar[tuple[ShownFigure, ...]] = TOTAL_SHOWN
    finish: ClassVar[str] = "finish windows: one task per instance, shuffle by window"

    def routed_by(self, spec: AggregateSpec) -> list[str]:
        return ["window_end"]

    def batch(self, spec: AggregateSpec, work: InstanceWork, came: Channels) -> TotalWindows:
        return TotalWindows(self, spec, work.kept)

    def window(self, told: ToldWindow) -> dict[str, float]:
        found, totals = super().window(told), told.totals()
        tuples = totals.get("shed_of", 0)
        dropped = {name: totals[name] for name in (DROPPED, DROPPED_TUPLES) if name in totals}
        if dropped and tuples:
            dropped["weight_dropped"] = dropped[DROPPED_TUPLES] / tuples
        return found | dropped

    def merged_window(self, told: ToldWindow) -> Values:
        return merged_window(told) | self.window(told)

    @property
    def merged_shown(self) -> tuple[ShownFigure, ...]:
        return self.shown

    def title(self, keys: str) -> str:
        return f"keep a total of windows by {keys}"


class TotalWindows(ShedWindows):
    """Divides each window's share among its groups, and counts the groups that are dropped."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self._dropped = {DROPPED: 0, DROPPED_TUPLES: 0}
        self._by_end: dict[int, tuple[int, int]] = {}

    def merged(self, heads: Sequence[pa.Array], states: Sequence[States]) -> pa.Table:
        (held,) = states
        ends = integers(flat(heads[1]))
        kept = _divided(ends, held)
        self._count(ends, held, kept)
        rows = np.flatnonzero(kept > 0)
        chosen = first_rows(held, rows, kept[rows])
        picked = pa.array(rows)
        return results_of(self._spec, [flat(head).take(picked) for head in heads], [chosen])

    def counts(self) -> dict[str, int]:
        return super().counts() | self._dropped

    def _count(self, ends: Ints, held: States, kept: Ints) -> None:
        """Count the dropped groups; of overlapping windows each tuple counts once (`_shed`)."""
        tuples: Ints = flat(held[0]).to_numpy()
        gone = kept == 0
        apart = gone & self._window.apart(ends)
        self._dropped[DROPPED] += int(apart.sum())
        self._dropped[DROPPED_TUPLES] += int(tuples[apart].sum())
        self.rows_shed += int(tuples[apart].sum())
        for start, stop in pairwise(_bounds(ends)):
            of = gone[start:stop]
            self._by_end[int(ends[start])] = int(of.sum()), int(tuples[start:stop][of].sum())

    def _told_of(self, end_us: int, tuples: int, kept: int) -> dict[str, float]:
        groups, dropped = self._by_end.pop(end_us, (0, 0))
        told = super()._told_of(end_us, tuples + dropped, kept)
        return told | {DROPPED: groups, DROPPED_TUPLES: dropped}


def _divided(ends: Ints, held: States) -> Ints:
    """How many candidates each group keeps; the groups of a window must be adjacent."""
    due: Ints = flat(held[1]).to_numpy()
    candidates, lowest = list_sizes(held[2]), lowest_word(held)
    parts = [
        quotas(due[start:stop], candidates[start:stop], lowest[start:stop])
        for start, stop in pairwise(_bounds(ends))
    ]
    return np.concatenate([np.empty(0, np.int64), *parts])


def _bounds(ends: Ints) -> list[int]:
    """Where each window begins among the rows, and the number of rows."""
    return [*np.flatnonzero(run_starts(ends)).tolist(), len(ends)]
