"""The figures of windows of an aggregate that sheds: how much was kept, the error, the drift.

The **error** of a window is estimated from what was kept. For each group it is the expected error
of the worst of its means, sums and counts; the window has the mean over its groups (equation 2.5
with expected errors, as the real ones are unknown). The mean of n of N tuples with variance v is
off by sqrt(2 / pi) sqrt(v / n (1 - n / N)) on average. Other functions do not count, nor do groups
of which nothing is left; only uniform shedding can lose a group.

The **half error** is the error if half of the tuples were shed. The error grows with
sqrt((1 - p) / p), where p is the share that is kept. So the half error gives the share for any
error (`share_within`). It is reported for aggregates without groups only, as in section 5.6.2.1 of
the dissertation, because small groups keep more than the share.

The **drift** is that of the concept since the window before, where the instance knows both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import pi, sqrt
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.approx.array import Words
from tidegate.approx.concept import GroupConcept, ScalarConcept
from tidegate.approx.drift import drift_of, drift_parts
from tidegate.operate.aggregate.answer import AnswerBatch, Channels, WindowAnswer
from tidegate.operate.aggregate.functions.spread import MEAN, VALUES, VARIANCE
from tidegate.operate.aggregate.pane.pane import AggregateSpec
from tidegate.operate.aggregate.shed.concept_aggregate import TUPLES
from tidegate.operate.figures import MOST_WINDOWS, ShownFigure, ToldWindow, Values, WindowFigures
from tidegate.operate.instance_cache import Kept
from tidegate.operate.kernels.group import run_starts
from tidegate.operate.kernels.order import Floats, Ints, flat, integers
from tidegate.operate.operator import InstanceWork
from tidegate.route.bucket import hash_of

Spreads = Sequence[Floats]
"""By group: the numbers of values, the means and the variances."""

CONCEPT = "concept"
"""The name under which the newest concept is left for the next batch."""

SHED_SHOWN = (
    ShownFigure("kept", "kept", "share", brief=True),
    ShownFigure("error", "expected error", "share", brief=True),
    ShownFigure("overlap", "concept overlap", "share"),
    ShownFigure("distance", "concept distance", "share"),
    ShownFigure("half_error", "error if half is shed", "share"),
)

_EXPECTED = sqrt(2 / pi)
"""The mean absolute value of a standard normal variable."""

_OF, _KEPT, _ERRORS, _ESTIMATED = "shed_of", "shed_kept", "shed_errors", "shed_estimated"
_HALF_ERRORS = "shed_half_errors"


@dataclass(frozen=True)
class Concept:
    """The concept of the window that ends at `end_us`, over the groups of one instance."""

    end_us: int
    groups: GroupConcept | None
    scalar: ScalarConcept | None


@dataclass(frozen=True)
class _Groups:
    """The figures of groups in closed windows, in columns, window after window."""

    kept: Ints
    tuples: Ints
    errors: Floats
    half_errors: Floats
    words: Words | None
    spread: Spreads | None

    def part(self, start: int, stop: int) -> _Groups:
        """The groups of one window."""
        part = slice(start, stop)
        words = None if self.words is None else self.words[part]
        spread = None if self.spread is None else [column[part] for column in self.spread]
        errors, half_errors = self.errors[part], self.half_errors[part]
        return _Groups(self.kept[part], self.tuples[part], errors, half_errors, words, spread)

    def concept(self, end_us: int) -> Concept:
        """The concept of a window, if these are all of its groups."""
        if self.words is not None:
            return Concept(end_us, GroupConcept.of(self.words, self.tuples), None)
        if self.spread is None or not np.isfinite(self.spread[2][0]):
            return Concept(end_us, None, None)
        _, mean, variance = (float(column[0]) for column in self.spread)
        return Concept(end_us, None, ScalarConcept(mean, variance))


@dataclass(frozen=True)
class ShedAnswer(WindowAnswer):
    """The results over the kept tuples, which ports scale, and the figures of windows.

    `state` is the column of the represented functions where shedding is by concept; the other names
    are fields of it. It is None where shedding is uniform. `counts` has the number of kept tuples
    of a group. `spreads` have the spread of the values of each mean and sum. `sums` says that some
    estimate also depends on how many tuples happened to be kept. `excess` has the sum of the excess
    of tuples (`sieve.py`). Over a join that sheds, `estimated` has the estimated number of pairs.
    `sampled` has the number of kept tuples that `spreads` are of, where it is not that of all.
    """

    rate: float
    keys: tuple[str, ...]
    state: str | None
    counts: str
    spreads: tuple[str, ...]
    sums: bool
    estimated: str | None = None
    excess: str | None = None
    sampled: str | None = None

    shown: ClassVar[tuple[ShownFigure, ...]] = SHED_SHOWN

    def batch(self, spec: AggregateSpec, work: InstanceWork, came: Channels) -> ShedWindows:
        return ShedWindows(self, spec, work.kept)

    def window(self, told: ToldWindow) -> dict[str, float]:
        return shed_window(told.totals())

    def renamed(self, names: Mapping[str, str]) -> ShedAnswer:
        """The same where the columns have other names."""
        if self.state is not None:
            return replace(self, state=names[self.state])
        return replace(
            self,
            counts=names[self.counts],
            spreads=tuple(names[name] for name in self.spreads),
            estimated=None if self.estimated is None else names[self.estimated],
            excess=None if self.excess is None else names[self.excess],
        )

    def column(self, rows: pa.Table, name: str) -> pa.Array:
        """A column of closed windows, or a field of the represented functions."""
        if self.state is None:
            return flat(rows.column(name))
        return flat(rows.column(self.state)).field(name)


class ShedWindows(AnswerBatch):
    """Collects the figures of closed windows, in the order of their ends.

    Holds the newest MOST_WINDOWS, and the concept of the last one.
    """

    def __init__(self, columns: ShedAnswer, spec: AggregateSpec, kept: Kept) -> None:
        super().__init__(spec)
        self.rows_shed = 0
        """How many tuples shedding by concept has left out of the results.

        Of overlapping windows only every n-th is counted, so that no tuple counts twice. Unlike the
        tuples that map tasks drop, this number does not depend on how the input was cut.
        """
        self._columns = columns
        self._window = spec.window
        self._kept = kept
        self._newest: Concept | None = kept.take(CONCEPT)
        self._told: dict[int, dict[str, float]] = {}

    def see(self, rows: pa.Table) -> None:
        """Rows of windows, one for each group, sorted by `window_end`."""
        ends = integers(flat(rows.column("window_end")))
        if not len(ends):
            return
        first = np.flatnonzero(run_starts(ends))[-MOST_WINDOWS:]
        if self._columns.sampled is not None and not self._sheds(rows):
            self._tell_whole(rows, ends, first)
            return
        self.rows_shed += self._shed(rows, ends)
        groups = self._groups(rows.slice(first[0]))
        bounds = [*(first - first[0]).tolist(), len(groups.kept)]
        for start, stop in pairwise(bounds):
            self._tell(int(ends[first[0] + start]), groups.part(start, stop))
        self._forget()

    def _forget(self) -> None:
        for end_us in sorted(self._told)[:-MOST_WINDOWS]:
            del self._told[end_us]

    def _sheds(self, rows: pa.Table) -> bool:
        """Whether some tuple of these windows was shed."""
        columns = self._columns
        return not columns.column(rows, TUPLES).equals(columns.column(rows, columns.counts))

    def _tell_whole(self, rows: pa.Table, ends: Ints, first: Ints) -> None:
        """Windows of which nothing was shed: no error, and no concept, which costs a sort."""
        tuples = self._columns.column(rows, TUPLES).to_numpy()
        estimates = bool(self._columns.sums or self._columns.spreads)
        for start, stop in pairwise([*first.tolist(), len(ends)]):
            count = int(tuples[start:stop].sum())
            told = self._told_of(int(ends[start]), count, count)
            told |= {_ERRORS: 0.0, _ESTIMATED: (stop - start) * estimates}
            self._told[int(ends[start])] = told
        self._newest = None
        self._forget()

    def counts(self) -> dict[str, int]:
        return {"shed": self.rows_shed}

    def figures(self) -> tuple[WindowFigures, ...]:
        """The figures; also leaves the newest concept for the next batch."""
        if self._newest is not None:
            groups = self._newest.groups
            nbytes = 0 if groups is None else groups.groups.nbytes + groups.tuples.nbytes
            self._kept.leave(CONCEPT, self._newest, nbytes)
        return tuple(
            WindowFigures(self._window.start_of(end_us), end_us, values)
            for end_us, values in self._told.items()
        )

    def _shed(self, rows: pa.Table, ends: Ints) -> int:
        columns = self._columns
        if columns.state is None:  # map tasks drop what is shed for good
            return 0
        counts = (columns.column(rows, name).to_numpy() for name in (TUPLES, columns.counts))
        tuples, kept = counts
        shed: Ints = (tuples - kept)[self._window.apart(ends)]
        return int(shed.sum())

    def _groups(self, rows: pa.Table) -> _Groups:
        columns = self._columns
        kept: Ints = columns.column(rows, columns.counts).to_numpy()
        tuples, rest = kept, 1 - columns.rate * kept / (kept + self._excess(rows))
        if columns.state is not None:
            tuples = columns.column(rows, TUPLES).to_numpy()
            rest = 1 - kept / np.maximum(tuples, 1)
            if columns.sampled is not None:
                # A part of the tuples was not to be shed, and adds nothing to the error.
                sampled = columns.column(rows, columns.sampled).to_numpy()
                rest *= (tuples - kept + sampled) / np.maximum(tuples, 1)
        elif columns.estimated is not None:
            tuples = np.rint(columns.column(rows, columns.estimated).to_numpy()).astype(np.int64)
        spreads = [_spread(columns.column(rows, name)) for name in columns.spreads]
        keys = [flat(rows.column(name)) for name in columns.keys]
        return _Groups(
            kept=kept,
            tuples=tuples,
            errors=self._errors(kept, rest, spreads),
            half_errors=self._errors(kept, 1 - rest, spreads),
            words=hash_of(keys) if keys else None,
            spread=spreads[0] if spreads else None,
        )

    def _excess(self, rows: pa.Table) -> Floats:
        """For how many tuples more the kept ones stand than the first rate says."""
        columns = self._columns
        if columns.excess is None:
            return np.zeros(rows.num_rows)
        found: Floats = pc.fill_null(columns.column(rows, columns.excess), 0.0).to_numpy()
        return found

    def _errors(self, kept: Ints, rest: Floats, spreads: Sequence[Spreads]) -> Floats:
        """The largest expected error of each group; NaN where nothing is estimated.

        `rest` is the share of tuples that was shed. With the kept share instead, the result is the
        half error. Where the number of kept tuples is random, the error of a sum has two parts: of
        the count, and of the values.
        """
        columns = self._columns
        chance = np.zeros(len(kept))
        if columns.sums and columns.state is None:
            chance = rest / np.maximum(kept, 1)
        found = [chance] if columns.sums else []
        for values, mean, variance in spreads:
            with np.errstate(all="ignore"):
                off = variance / values / mean**2 * rest
            off = np.where(rest == 0, 0.0, np.where(values == 0, np.nan, off))
            found.append(off + chance)
        if not found:
            return np.full(len(kept), np.nan)
        largest = found[0]
        for other in found[1:]:
            largest = np.fmax(largest, other)
        errors: Floats = np.minimum(_EXPECTED * np.sqrt(largest), 1.0)
        return errors

    def _tell(self, end_us: int, groups: _Groups) -> None:
        told: dict[str, float] = {}
        if self._columns.state is not None or self._columns.estimated is not None:
            told |= self._told_of(end_us, int(groups.tuples.sum()), int(groups.kept.sum()))
        known = np.isfinite(groups.errors)
        told |= {_ERRORS: float(groups.errors[known].sum()), _ESTIMATED: int(known.sum())}
        if not self._columns.keys:
            told[_HALF_ERRORS] = float(np.nan_to_num(groups.half_errors[known]).sum())
        concept = groups.concept(end_us)
        told |= self._drift(concept)
        self._newest, self._told[end_us] = concept, told

    def _told_of(self, end_us: int, tuples: int, kept: int) -> dict[str, float]:
        """The tuples of the groups in a window that have rows, and how many were kept."""
        return {_OF: tuples, _KEPT: kept}

    def _drift(self, after: Concept) -> dict[str, float]:
        """The drift since the window before; nothing if the instance has not seen that window."""
        before = self._newest
        if before is None or not self._window.follows(after.end_us, before.end_us):
            return {}
        if before.groups is not None and after.groups is not None:
            return drift_parts(before.groups, after.groups)
        if before.scalar is not None and after.scalar is not None:
            drift = before.scalar.drift_to(after.scalar)
            return {"overlap": drift.overlap, "distance": drift.distance}
        return {}


def shed_window(totals: Values) -> dict[str, float]:
    """The figures of a window, from the sums over its instances."""
    found: dict[str, float] = {n: totals[n] for n in ("overlap", "distance") if n in totals}
    if totals.get(_OF):
        found["kept"] = totals[_KEPT] / totals[_OF]
    if totals.get(_ESTIMATED):
        found["error"] = totals[_ERRORS] / totals[_ESTIMATED]
        if _HALF_ERRORS in totals:
            found["half_error"] = totals[_HALF_ERRORS] / totals[_ESTIMATED]
    drift = drift_of(totals)
    if drift is not None:
        found |= {"overlap": drift.overlap, "distance": drift.distance}
    return found


def share_within(error: float, half_error: float) -> float:
    """The share of tuples that may be shed for an expected error, given the half error."""
    if half_error == 0:
        return 1.0
    return error**2 / (error**2 + half_error**2)


def _spread(column: pa.Array) -> Spreads:
    return [
        column.field(name).to_numpy(zero_copy_only=False).astype(np.float64)
        for name in (VALUES, MEAN, VARIANCE)
    ]
