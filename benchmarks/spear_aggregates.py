"""Aggregates of one's own that `spear.py` runs: costly, holistic, and those that scan.

A class with `exact_fallback = False` is the same, of which WITH ERROR keeps the sample alone.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from tidegate import Aggregator

State = dict[str, Any]

_MILLIONTHS = 1_000_000
_CUT = 0.1


def calibrated(reading: float) -> float:
    """What was measured, by Newton's method from a curve: some microseconds in Python."""
    value = reading
    for _ in range(12):
        value -= (value + 1e-4 * value**3 - reading) / (1 + 3e-4 * value**2)
    return value


class Calibrated(Aggregator):
    """The mean of calibrated readings: its work is what costs, its state is two numbers."""

    state: ClassVar = {"total": pa.int64(), "n": pa.int64()}
    result = pa.float64()
    mean_like = True

    def init(self, n: int) -> State:
        return {"total": np.zeros(n, np.int64), "n": np.zeros(n, np.int64)}

    def fold(self, state: State, groups: Any, x: pa.Array) -> State:
        total, counts = state["total"].tolist(), state["n"].tolist()
        for group, reading in zip(groups.tolist(), x.to_pylist(), strict=True):
            total[group] += round(calibrated(reading) * _MILLIONTHS)
            counts[group] += 1
        return {"total": np.array(total, np.int64), "n": np.array(counts, np.int64)}

    def merge(self, state: State, groups: Any, other: State) -> State:
        for name, column in state.items():
            np.add.at(column, groups, other[name])
        return state

    def finish(self, state: State) -> pa.Array:
        return pa.array(state["total"] / np.maximum(state["n"], 1) / _MILLIONTHS)


class CalibratedAlone(Calibrated):
    exact_fallback = False


class Kept(Aggregator):
    """All values of a group, for what needs them all; in any order."""

    state: ClassVar = {"values": pa.list_(pa.float64())}
    result = pa.float64()

    def init(self, n: int) -> State:
        return {"values": pa.array([[]] * n, pa.list_(pa.float64()))}

    def fold(self, state: State, groups: Any, x: pa.Array) -> State:
        return self._together(state, groups, x.to_numpy(zero_copy_only=False))

    def merge(self, state: State, groups: Any, other: State) -> State:
        lists = other["values"]
        sizes = lists.value_lengths().to_numpy()
        return self._together(state, np.repeat(groups, sizes), lists.flatten().to_numpy())

    def _together(self, state: State, groups: Any, values: Any) -> State:
        n = len(state["values"])
        held = np.repeat(np.arange(n), state["values"].value_lengths().to_numpy())
        codes = np.concatenate([held, groups])
        every = np.concatenate([state["values"].flatten().to_numpy(), values])
        if n > 1:
            every = every[np.argsort(codes, kind="stable")]
        ends = np.append(0, np.cumsum(np.bincount(codes, minlength=n)))
        return {"values": pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(every))}

    def _lists(self, state: State) -> list[Any]:
        ends = state["values"].offsets.to_numpy()
        return np.split(state["values"].values.to_numpy(), ends[1:-1])


class Trimmed(Kept):
    """The mean without the lowest and the highest tenth: holistic, as a median is."""

    mean_like = True

    def finish(self, state: State) -> pa.Array:
        return pa.array([trimmed(values) for values in self._lists(state)], pa.float64())


def trimmed(values: Any) -> float | None:
    """The mean of what is left of values; None where there is nothing."""
    cut = int(len(values) * _CUT)
    left = np.sort(values)[cut : len(values) - cut]
    return float(left.mean()) if len(left) else None


class TrimmedAlone(Trimmed):
    exact_fallback = False


class ScannedMean(Kept):
    """The mean as an engine computes it that keeps a window and looks at each of its tuples."""

    def finish(self, state: State) -> pa.Array:
        return pa.array([scanned_mean(v.tolist()) for v in self._lists(state)], pa.float64())


class ScannedMedian(Kept):
    """The median as such an engine computes it."""

    def finish(self, state: State) -> pa.Array:
        return pa.array([scanned_median(v.tolist()) for v in self._lists(state)], pa.float64())


def scanned_mean(window: list[float]) -> float:
    total, n = 0.0, 0
    for value in window:
        total += value
        n += 1
    return total / n


def scanned_median(window: list[float]) -> float:
    held: list[float] = []
    for value in window:
        held.append(value)
    held.sort()
    return held[len(held) // 2]
