"""How well a run was scaled: stability, accuracy, settling time and overshoot.

It judges the timeline of a run, simulated or real, so that policies can be compared. The names are
those of feedback control (Hellerstein and others, 2004); `Saso` says what they mean here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.model.operation import Floats

Counts = npt.NDArray[np.int64]

MOVED = 0.05
"""A rate that is so much of itself higher or lower than before has changed the load."""


@dataclass(frozen=True)
class Timeline:
    """A run, by intervals: when each began, the instances in it, and how many it needed.

    `wanted` are the fewest instances that would have done, `latency` seconds, NaN where there is
    none. `changes` are the times at which the load changed, and `window_s` is how long such a
    change goes on to change the work: the length of a window.
    """

    times: Floats
    instances: Counts
    wanted: Counts
    latency: Floats
    changes: Sequence[float] = ()
    window_s: float = 0.0


@dataclass(frozen=True)
class Saso:
    """What is said of a run.

    - Stability: `switches`, and of them `reversals`: against the direction of the one before, with
      no change of the load between the two.
    - Accuracy: `enough`, the part of the time with as many instances as wanted, the mean `distance`
      from them in instances, and the mean and the highest latency in seconds.
    - Settling time: `settling_s`, the longest time from a change of the load to the last switch
      before the next one.
    - Overshoot: the most instances above those wanted, once a window has passed since a change; and
      `undershoot`, the most that were missing.

    None is for what there was no occasion to see: no change, or none that was left alone for
    longer than a window.
    """

    switches: int
    reversals: int
    enough: float
    distance: float
    latency_mean_s: float | None
    latency_max_s: float | None
    settling_s: float | None
    overshoot: int | None
    undershoot: int | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def saso(timeline: Timeline) -> Saso:
    """Judge a run that had at least one interval."""
    times, instances, wanted = timeline.times, timeline.instances, timeline.wanted
    switched = np.flatnonzero(np.diff(instances)) + 1
    known = timeline.latency[np.isfinite(timeline.latency)]
    settled = _settled(timeline)
    above = (instances - wanted)[settled]
    return Saso(
        switches=len(switched),
        reversals=_reversals(times[switched], np.diff(instances)[switched - 1], timeline.changes),
        enough=float((instances >= wanted).mean()),
        distance=float(np.abs(instances - wanted).mean()),
        latency_mean_s=float(known.mean()) if len(known) else None,
        latency_max_s=float(known.max()) if len(known) else None,
        settling_s=_settling(timeline, times[switched]),
        overshoot=max(int(above.max()), 0) if len(above) else None,
        undershoot=max(int(-above.min()), 0) if len(above) else None,
    )


def changes(times: Floats, *rates: Floats) -> list[float]:
    """The times at which the load changed: the first, and where a rate has moved by a twentieth.

    That is, from what it was at the change before: a rate that drifts changes the load as well.
    """
    found: list[float] = []
    level: tuple[float, ...] = ()
    for time, *now in zip(times.tolist(), *(of.tolist() for of in rates), strict=True):
        if not found or any(abs(a - b) > MOVED * max(a, b) for a, b in zip(level, now)):
            found.append(time)
            level = tuple(now)
    return found


def _reversals(times: Floats, steps: Counts, changed: Sequence[float]) -> int:
    """Switches up after one down, or down after one up, while the load was the same."""
    epochs = np.searchsorted(np.asarray(changed, np.float64), times, side="right")
    same = epochs[1:] == epochs[:-1]
    return int((same & (np.sign(steps[1:]) != np.sign(steps[:-1]))).sum())


def _phases(timeline: Timeline) -> list[tuple[float, float]]:
    """From each change to the next, and from the last one to the end."""
    ends = [*timeline.changes[1:], np.inf]
    return list(zip(timeline.changes, ends, strict=True)) if timeline.changes else []


def _settling(timeline: Timeline, switched: Floats) -> float | None:
    """Of the phases that are longer than a window: the others end before they could settle."""
    last = float(timeline.times[-1])
    found = []
    for start, end in _phases(timeline):
        if min(end, last) - start <= timeline.window_s:
            continue
        inside = switched[(switched > start) & (switched < end)]
        found.append(float(inside[-1]) - start if len(inside) else 0.0)
    return max(found, default=None)


def _settled(timeline: Timeline) -> npt.NDArray[np.bool_]:
    """The intervals in which a window has passed since the last change."""
    times = timeline.times
    starts = np.concatenate(([-np.inf], np.asarray(timeline.changes, np.float64)))
    if not timeline.changes:
        return np.zeros(len(times), bool)
    since = times - starts[np.searchsorted(starts, times, side="right") - 1]
    return np.isfinite(since) & (since > timeline.window_s)
