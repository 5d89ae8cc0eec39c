"""Figures of windows for people and policies, from the tasks to the driver.

An instance reports figures of the windows that it closes (`WindowFigures`). A map task reports what
it sends to each instance, pane by pane (`PaneFigures`). The driver adds up the panes until their
windows are closed. The operator then computes what is shown (`Operator.window_figures`). No row of
a result depends on figures, and no checkpoint has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.batch import MIN_US

MOST_WINDOWS = 64
"""An instance reports at most so many windows in a batch, the newest ones. All instances close the
same windows, so they report the same ones, except for windows of which an instance has nothing."""

MOST_PANES = 1_024
"""A map task reports at most so many pairs of pane and instance in a batch, the newest ones."""

Values = Mapping[str, float]
Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]


@dataclass(frozen=True)
class ShownFigure:
    """A figure as people see it: a label, and a unit that is `share`, `ms`, `bytes` or none.

    The live view has one line, and shows those that are `brief`. With a `weight`, the mean over
    windows is weighted by that other figure: a share of all rows, not the mean of shares.
    """

    name: str
    label: str
    unit: str = ""
    brief: bool = False
    weight: str | None = None


@dataclass(frozen=True)
class WindowFigures:
    """The figures of an instance's part of a window [start_us, end_us) that it has closed.

    An instance may report a window several times, with different names of values.
    """

    start_us: int
    end_us: int
    values: Values


def newest_windows(windows: Iterable[WindowFigures]) -> tuple[WindowFigures, ...]:
    """The newest MOST_WINDOWS in the order of their ends, each once with all its values."""
    found: dict[int, WindowFigures] = {}
    for one in windows:
        before = found.get(one.end_us)
        values = one.values if before is None else {**before.values, **one.values}
        found[one.end_us] = WindowFigures(one.start_us, one.end_us, values)
    return tuple(found[end_us] for end_us in sorted(found)[-MOST_WINDOWS:])


@dataclass(frozen=True)
class PaneFigures:
    """Figures of a map task in columns: when a pane starts, an instance, and values by name.

    The figures are complete for panes from `since_us` on; earlier panes may be missing.
    """

    since_us: int
    starts_us: npt.NDArray[np.int64]
    instances: npt.NDArray[np.int64]
    values: Mapping[str, npt.NDArray[np.float64]]

    @staticmethod
    def of(
        starts_us: npt.NDArray[np.int64],
        instances: npt.NDArray[np.int64],
        values: Mapping[str, Numbers],
    ) -> PaneFigures:
        """Make it of columns of one length; of too many rows only the newest whole panes."""
        since_us, kept = MIN_US, np.ones(len(starts_us), np.bool_)
        if len(starts_us) > MOST_PANES:
            since_us = int(np.sort(starts_us)[-MOST_PANES - 1]) + 1
            kept = starts_us >= since_us
        columns = {name: column[kept].astype(np.float64) for name, column in values.items()}
        return PaneFigures(since_us, starts_us[kept], instances[kept].astype(np.int64), columns)

    def packed(self) -> bytes:
        """The bytes that travel to the driver: a line of JSON, then the columns."""
        told = json.dumps([self.since_us, len(self.starts_us), *self.values]).encode()
        columns = (self.starts_us, self.instances, *self.values.values())
        return b"".join([told, b"\n", *(column.tobytes() for column in columns)])

    @staticmethod
    def unpacked(data: bytes) -> PaneFigures:
        told, _, columns = data.partition(b"\n")
        since_us, rows, *names = json.loads(told)
        whole = np.frombuffer(columns, np.int64, 2 * rows).reshape(2, rows)
        parts = np.frombuffer(columns, np.float64, -1, whole.nbytes).reshape(len(names), rows)
        return PaneFigures(since_us, whole[0], whole[1], dict(zip(names, parts, strict=True)))


@dataclass(frozen=True)
class ToldWindow:
    """All figures that were reported of the window that ends at `end_us`.

    `closed` has the figures of the instances, by instance. `dealt` has those of the map tasks over
    its panes: by name one value for each instance. It is None where some are missing, as for a
    window that began before the run.
    """

    end_us: int
    instances: int
    closed: Mapping[int, Values]
    dealt: Mapping[str, npt.NDArray[np.float64]] | None

    def each(self, name: str) -> list[float]:
        """The values of a name by instance; 0 where an instance reported none."""
        dealt = self.dealt or {}
        told_of = [self.instances, 1, *(i + 1 for i in self.closed), *map(len, dealt.values())]
        values = [0.0] * max(told_of)
        if name in dealt:
            values[: len(dealt[name])] = dealt[name].tolist()
        for instance, told in self.closed.items():
            values[instance] = told.get(name, values[instance])
        return values

    def total(self, name: str) -> float:
        return sum(self.each(name))

    def largest(self, name: str) -> float:
        return max(self.each(name))

    def totals(self) -> dict[str, float]:
        """The sum of every value by its name."""
        told = dict.fromkeys(name for values in self.closed.values() for name in values)
        return {name: self.total(name) for name in (*told, *(self.dealt or {}))}
