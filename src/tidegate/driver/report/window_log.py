"""Collects the figures of a subquery's windows over a run, for summary, status and live view.

Figures of panes from map tasks wait here until the windows over them are closed. Everything is
bounded: the waiting panes, the kept windows, and a few sums over the run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.batch import MAX_US, MIN_US
from tidegate.calendar.microsecond import time_text
from tidegate.driver.metric.text import number_text
from tidegate.execute.job import Job, Outcome
from tidegate.operate.figures import MOST_WINDOWS, PaneFigures, ShownFigure, ToldWindow, Values
from tidegate.operate.operator import Operator
from tidegate.route.reach import Reach

KEPT_WINDOWS = 16
"""The windows of a subquery in the status: the newest."""

Amounts = npt.NDArray[np.float64]
"""A number for each instance."""

_NOTHING: Amounts = np.zeros(0)

MOST_WAITING = 4_096
"""The most entries that may wait, a pane counting once per instance; the oldest are dropped."""


@dataclass(frozen=True)
class WindowDigest:
    """The windows of a subquery over a run.

    Their number, the `mean`, `max` and `last` of each figure, and the newest windows by their ends.
    """

    windows: int
    figures: Mapping[str, Values]
    newest: tuple[tuple[int, Values], ...]
    shown: tuple[ShownFigure, ...]

    def as_dict(self) -> dict[str, Any]:
        """The form of the summary."""
        figures = {name: _rounded(of) for name, of in self.figures.items()}
        return {"windows": self.windows, "figures": figures}

    def newest_as_dict(self) -> list[dict[str, Any]]:
        """The newest windows in the form of the status, oldest first."""
        return [{"window_end": time_text(end), **_rounded(of)} for end, of in self.newest]

    @property
    def line(self) -> str:
        """The means and maxima over the run, for people; empty without figures."""
        parts = []
        for one in self._shown():
            of = self.figures[one.name]
            mean, most = (number_text(of[name], one.unit) for name in ("mean", "max"))
            parts.append(f"{one.label} {mean}" + (f" (at most {most})" if most != mean else ""))
        return ", ".join(parts)

    @property
    def newest_line(self) -> str:
        """The last values of the brief figures; empty without any."""
        brief = [(one, self.figures[one.name]["last"]) for one in self._shown() if one.brief]
        return ", ".join(f"{one.label} {number_text(last, one.unit)}" for one, last in brief)

    def _shown(self) -> list[ShownFigure]:
        return [one for one in self.shown if one.name in self.figures]


def newest_figures(digests: Mapping[str, WindowDigest]) -> str:
    """The figures of the newest windows of all subqueries, on one line; empty without any."""
    return ", ".join(line for line in (digest.newest_line for digest in digests.values()) if line)


def _rounded(values: Values) -> dict[str, float]:
    """Six digits are enough for people; whole numbers stay whole."""
    return {n: int(v) if v == int(v) else float(f"{v:.6g}") for n, v in values.items()}


class ToldPanes:
    """The figures of panes that open windows cover; at most MOST_WAITING entries."""

    def __init__(self, levels: Iterable[str]) -> None:
        self.since_us = MIN_US
        """The event time from which on the figures are complete."""
        self._levels = frozenset(levels)
        self._panes: dict[int, dict[str, Amounts]] = {}
        self._entries = 0

    def add(self, told: Sequence[PaneFigures]) -> None:
        """Add the figures of one batch's map tasks."""
        told = [one for one in told if len(one.starts_us)]
        if not told:
            return
        self.since_us = max(self.since_us, *(one.since_us for one in told))
        instances = np.concatenate([one.instances for one in told])
        starts_us, pane = np.unique(
            np.concatenate([one.starts_us for one in told]), return_inverse=True
        )
        shape = len(starts_us), int(instances.max()) + 1
        sums = {
            name: np.bincount(pane * shape[1] + instances, column, shape[0] * shape[1])
            for name, column in _columns(told)
        }
        for i, start_us in enumerate(starts_us.tolist()):
            held = self._panes.setdefault(start_us, {})
            self._entries -= _instances(held)
            self._join(held, {name: of.reshape(shape)[i] for name, of in sums.items()})
            self._entries += _instances(held)
        self._make_room()

    def between(self, start_us: int, end_us: int) -> dict[str, Amounts] | None:
        """Each figure by instance over a window; None if some of it may be missing."""
        if start_us < self.since_us:
            return None
        found: dict[str, Amounts] = {}
        times = sorted(self._panes)
        for time in times[bisect_left(times, start_us) : bisect_left(times, end_us)]:
            self._join(found, self._panes[time])
        return found

    def forget(self, upto_us: int) -> None:
        """Let go of the panes up to one that begins here: no open window covers them."""
        for start_us in [s for s in self._panes if s <= upto_us]:
            self._entries -= _instances(self._panes.pop(start_us))

    def _join(self, into: dict[str, Amounts], other: Mapping[str, Amounts]) -> None:
        """Amounts are added up; of levels, which are no amounts, the largest counts."""
        for name, more in other.items():
            held = into.get(name, _NOTHING)
            few, many = sorted((held, more), key=len)
            few = np.pad(few, (0, len(many) - len(few))) if len(few) < len(many) else few
            into[name] = np.maximum(few, many) if name in self._levels else few + many

    def _make_room(self) -> None:
        if self._entries > MOST_WAITING:
            for start_us in sorted(self._panes):
                if self._entries <= MOST_WAITING:
                    break
                self._entries -= _instances(self._panes.pop(start_us))
                self.since_us = max(self.since_us, start_us + 1)


class WindowLog:
    """The figures of the windows that one subquery closes; calls may come from several threads."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._lock = Lock()
        self._panes = ToldPanes(operator.traits.levels)
        self._newest: deque[tuple[int, Values]] = deque(maxlen=KEPT_WINDOWS)
        self._windows = 0
        self._sums: dict[str, tuple[float, float, float, float]] = {}

    def begin(self, since_us: int) -> None:
        """Before the first batch of a run: tuples of windows from here on have all to come."""
        self._panes.since_us = max(self._panes.since_us, since_us)

    def add(self, job: Job, outcomes: Sequence[Outcome]) -> None:
        """One more batch, which was committed; where it told nothing, nothing is done."""
        panes = [PaneFigures.unpacked(data) for outcome in outcomes for data in outcome.panes]
        if not panes and not any(outcome.windows for outcome in outcomes):
            return
        with self._lock:
            self._panes.add(panes)
            for start_us, end_us, closed in _by_window(outcomes):
                dealt = self._panes.between(start_us, end_us)
                told = ToldWindow(end_us, job.mapping.running, closed, dealt)
                self._count(end_us, job.operator.window_figures(told))
            self._panes.forget(self._passed(job.frontier_us))

    def digest(self) -> WindowDigest | None:
        """With all batches so far; None where no window was told of."""
        with self._lock:
            if not self._windows:
                return None
            figures = {
                name: {"mean": total / weight, "max": most, "last": last}
                for name, (weight, total, most, last) in self._sums.items()
            }
            newest, shown = tuple(self._newest), self._operator.shown_figures
            return WindowDigest(self._windows, figures, newest, shown)

    def _count(self, end_us: int, values: Values) -> None:
        self._windows += 1
        values = {name: value for name, value in values.items() if isfinite(value)}
        self._newest.append((end_us, values))
        weights = {one.name: one.weight for one in self._operator.shown_figures}
        for name, value in values.items():
            weight = values.get(weights.get(name) or "", 1.0)
            before, total, most, _ = self._sums.get(name, (0.0, 0.0, value, value))
            self._sums[name] = (before + weight, total + weight * value, max(most, value), value)

    def _passed(self, frontier_us: int) -> int:
        """The event time up to which no pane is in an open window."""
        if frontier_us in (MIN_US, MAX_US):
            return frontier_us
        reach = self._operator.state.reach
        return frontier_us - (reach.us if isinstance(reach, Reach) else 0)


def _columns(told: Sequence[PaneFigures]) -> Iterable[tuple[str, Amounts]]:
    """Each figure over all rows, with 0 where a map task did not report it."""
    for name in dict.fromkeys(name for one in told for name in one.values):
        parts = [one.values.get(name, np.zeros(len(one.starts_us))) for one in told]
        yield name, np.concatenate(parts)


def _instances(pane: Mapping[str, Amounts]) -> int:
    return max((len(of) for of in pane.values()), default=0)


def _by_window(
    outcomes: Iterable[Outcome],
) -> Iterable[tuple[int, int, dict[int, Values]]]:
    """Each reported window with the figures of its instances, in the order of the ends.

    An instance reports at most its newest MOST_WINDOWS windows, so only the newest MOST_WINDOWS of
    all are complete.
    """
    found: dict[int, tuple[int, dict[int, Values]]] = {}
    for outcome in outcomes:
        for window in outcome.windows:
            _, told = found.setdefault(window.end_us, (window.start_us, {}))
            told[outcome.instance] = window.values
    for end_us in sorted(found)[-MOST_WINDOWS:]:
        start_us, told = found[end_us]
        yield start_us, end_us, told
