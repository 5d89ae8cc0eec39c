"""CORR, COVAR_SAMP and COVAR_POP, from the means and the sums of products that panes keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.definition import NUMBER, AggregateFunction
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Floats, Ints, floats, valid
from tidegate.operate.kernels.total import sum_floats

_X, _Y = 0, 1


class Comoment:
    """Sums of products of deviations from the means, over pairs in which neither is NULL.

    A fold makes two passes, as that of a variance; merges use Chan's formula for two columns.
    Values are measured from one of their group, so that a column of equal values has deviations of
    exactly zero, in every pane and in every merge of panes: CORR is then NULL, as in Spark.
    """

    products: ClassVar[tuple[tuple[int, int], ...]]
    """Which sums are kept: of (x, y), of (x, x), of (y, y)."""

    result = pa.float64()

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        sums = ("xy"[a] + "xy"[b] for a, b in self.products)
        return (("n", pa.int64()), *((name, pa.float64()) for name in ("x", "y", *sums)))

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        masks = [mask for mask in map(valid, columns) if mask is not None]
        if masks:
            both = np.logical_and.reduce(masks)
            groups, columns = groups.where(both), [c.filter(pa.array(both)) for c in columns]
        counts = np.maximum(groups.counts, 1)
        with np.errstate(invalid="ignore", over="ignore"):
            parts = [_centred(groups, floats(column), counts) for column in columns]
            sums = [
                sum_floats(groups, parts[a].away * parts[b].away)
                - parts[a].drift * (parts[b].drift / counts)
                for a, b in self.products
            ]
        means = [pa.array(part.mean) for part in parts]
        return [pa.array(groups.counts), *means, *map(pa.array, self._bounded(sums))]

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        given_counts: Ints = states[0].to_numpy()
        given = [floats(state) for state in states[1:]]
        counts = np.zeros(groups.n, np.int64)
        merged = [np.zeros(groups.n) for _ in given]
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            for group, row in groups.rounds():
                na, nb = counts[group], given_counts[row]
                share = nb / (na + nb)
                steps = [given[i][row] - merged[i][group] for i in (_X, _Y)]
                joined = [merged[i][group] + steps[i] * share for i in (_X, _Y)]
                joined += [
                    merged[i][group] + given[i][row] + steps[a] * steps[b] * (na * share)
                    for i, (a, b) in enumerate(self.products, 2)
                ]
                for column, new, other in zip(merged, joined, given, strict=True):
                    kept = np.where(nb == 0, column[group], new)
                    column[group] = np.where(na == 0, other[row], kept)
                counts[group] = na + nb
        return [pa.array(counts), *map(pa.array, merged)]

    def _bounded(self, sums: Sequence[Floats]) -> list[Floats]:
        """The sums, those of squares not below zero."""
        pairs = zip(sums, self.products, strict=True)
        return [np.maximum(total, 0.0) if a == b else total for total, (a, b) in pairs]


@dataclass(frozen=True)
class _Centred:
    """A column of pairs as deviations `away` from a mean, which they miss by `drift` in sum."""

    mean: Floats
    away: Floats
    drift: Floats


def _centred(groups: Groups, values: Floats, counts: Ints) -> _Centred:
    origin = np.zeros(groups.n)
    origin[groups.codes] = values
    moved = values - origin[groups.codes]
    mean = sum_floats(groups, moved) / counts
    away = moved - mean[groups.codes]
    drift = sum_floats(groups, away)
    return _Centred(origin + (mean + drift / counts), away, drift)


@dataclass(frozen=True)
class Covariance(Comoment):
    """The covariance of a sample, NULL below two pairs, or of a population, NULL without pairs."""

    sample: bool
    products = ((_X, _Y),)

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        counts: Ints = states[0].to_numpy()
        divisor = counts - 1 if self.sample else counts
        return pa.array(floats(states[3]) / np.maximum(divisor, 1), mask=divisor < 1)


@dataclass(frozen=True)
class Correlation(Comoment):
    """Pearson's correlation; NULL below two pairs and where one column does not vary."""

    products = ((_X, _Y), (_X, _X), (_Y, _Y))

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        counts: Ints = states[0].to_numpy()
        xy, xx, yy = (floats(state) for state in states[3:])
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            spread = np.sqrt(xx * yy)
            return pa.array(xy / spread, mask=(counts < 2) | (spread == 0))


CORR = AggregateFunction(
    name="corr",
    python="corr",
    sql=("CORR",),
    doc="Pearson's correlation of two columns; NULL where one of them does not vary.",
    arguments=(NUMBER, NUMBER),
    family=lambda *_: Correlation(),
)
COVAR_SAMP = AggregateFunction(
    name="covar_samp",
    python="covar_samp",
    sql=("COVAR_SAMP",),
    doc="The covariance of two columns of a sample; NULL for a single pair.",
    arguments=(NUMBER, NUMBER),
    family=lambda *_: Covariance(sample=True),
)
COVAR_POP = AggregateFunction(
    name="covar_pop",
    python="covar_pop",
    sql=("COVAR_POP",),
    doc="The covariance of two columns of a population.",
    arguments=(NUMBER, NUMBER),
    family=lambda *_: Covariance(sample=False),
)
