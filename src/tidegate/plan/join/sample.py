"""Reads the first rows of both sides of a join, by which its method is chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.errors import TaskError
from tidegate.expression.tree import Expr
from tidegate.operate.join.kind import LEFT, RIGHT
from tidegate.operate.join.predicate.bound import bounds_of, codes_of, key_of
from tidegate.operate.join.spec import EQUAL, PairInterval, Probe
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.plan.physical import ARROW, Prefix
from tidegate.query.definition import StreamDef
from tidegate.route.cell_choice import CellSurvey, SideSurvey
from tidegate.route.mapping import Mapping

_LIKELY_ROWS = 100_000
"""The assumed tuples of a side in a window: the real number is not known when planning."""

RawRows = Callable[[StreamDef, Sequence[str]], pa.Table | None]
"""Returns these columns of a stream's first rows; None if reading them is not cheap."""


@dataclass(frozen=True)
class SideSample:
    """Sampled rows of both sides, as their prefixes emit them; never empty."""

    left: pa.Table
    right: pa.Table

    @property
    def text(self) -> str:
        return f"the first {self.left.num_rows} and {self.right.num_rows} tuples"

    def pass_rate(self, interval: PairInterval) -> float | None:
        """The share of the sampled pairs that pass an interval; None if that is unknown."""
        try:
            if interval.kind == EQUAL:
                return self._equal_rate((interval,))
            seen = (interval.right_low, interval.right_high)
            views = [(interval.left_value, self.left, seen, self.right)]
            seen = (interval.left_low, interval.left_high)
            views.append((interval.right_value, self.right, seen, self.left))
            value, rows, bounds, others = max(
                views, key=lambda view: sum(b is not None for b in view[2])
            )
            return _rate(_doubles(value, rows), [_bound(b, others) for b in bounds])
        except TaskError:
            return None

    def probe_rate(self, probe: Probe) -> float | None:
        """The share of the sampled pairs that an index passes; None if that is unknown."""
        if not probe.one_key:
            return self.pass_rate(probe.indexed[0])
        try:
            return self._equal_rate(probe.equalities)
        except TaskError:
            return None

    def union_rate(self, branches: Sequence[Probe]) -> float | None:
        """The sum of the shares of several indexes; a pair that two of them pass counts twice."""
        rates = [self.probe_rate(branch) for branch in branches]
        known = [rate for rate in rates if rate is not None]
        return sum(known) if len(known) == len(rates) else None

    def top_share(self, equalities: Sequence[PairInterval]) -> float | None:
        """The share of the most frequent key, on the side where it is larger.

        One occurrence is not counted: in a small sample a key seen once says nothing.
        """
        try:
            return max(
                _top(self.left, [e.left_value for e in equalities]),
                _top(self.right, [e.right_value for e in equalities]),
            )
        except TaskError:
            return None

    def survey(self, probe: Probe, mapping: Mapping) -> CellSurvey | None:
        """The values and bounds of an index, for the choice of cells; None if they are unknown."""
        sides = []
        for side, rows in ((LEFT, self.left), (RIGHT, self.right)):
            try:
                values = low = high = key_of(probe, side, rows)
                if not probe.one_key:
                    low, high = bounds_of(probe.indexed[0], 1 - side, rows)
            except TaskError:
                return None
            sides.append(SideSurvey(values, low, high, _LIKELY_ROWS / rows.num_rows))
        return CellSurvey(sides, mapping.owner_array)

    def _equal_rate(self, equalities: Sequence[PairInterval]) -> float:
        sides = []
        for side, rows in ((LEFT, self.left), (RIGHT, self.right)):
            codes = codes_of(equalities, side, rows)
            sides.append(np.unique(codes[~np.isnan(codes)], return_counts=True))
        (left, lefts), (right, rights) = sides
        _, at_left, at_right = np.intersect1d(left, right, return_indices=True)
        pairs = np.dot(lefts[at_left], rights[at_right])
        return float(pairs) / float(self.left.num_rows * self.right.num_rows)


def sample_of(
    left: Sequence[Prefix],
    right: Sequence[Prefix],
    streams: Sequence[StreamDef],
    rows: RawRows | None,
) -> SideSample | None:
    """A sample of both sides; None if one of them has none."""
    if rows is None:
        return None
    sides = [_side(prefixes, streams, rows) for prefixes in (left, right)]
    if sides[0] is None or sides[1] is None:
        return None
    return SideSample(sides[0], sides[1])


def read_of(prefix: Prefix) -> list[str]:
    """The columns to read for a sample of a prefix, with the time column."""
    return list(dict.fromkeys((*prefix.columns, prefix.time)))


def _side(
    prefixes: Sequence[Prefix], streams: Sequence[StreamDef], rows: RawRows
) -> pa.Table | None:
    parts = []
    for prefix in prefixes:
        if prefix.engine != ARROW or prefix.lookups or not isinstance(prefix.origin, int):
            return None
        raw = rows(streams[prefix.origin], read_of(prefix))
        if raw is None:
            return None
        try:
            for condition in prefix.where:
                raw = raw.filter(evaluate(condition, raw))
            columns = {n: evaluate(e, raw) for n, e in prefix.outputs}
        except TaskError:
            return None
        parts.append(pa.table(columns) if columns else None)
    if not parts or any(p is None for p in parts):
        return None
    table = pa.concat_tables(parts)
    return table if table.num_rows else None


def _doubles(expr: Expr, rows: pa.Table) -> np.ndarray[Any, Any]:
    """Values as doubles, NaN for NULL."""
    result: np.ndarray[Any, Any] = evaluate(expr, rows).to_numpy(zero_copy_only=False)
    return result.astype(np.float64)


def _bound(expr: Expr | None, rows: pa.Table) -> np.ndarray[Any, Any] | None:
    return None if expr is None else _doubles(expr, rows)


def _rate(
    values: np.ndarray[Any, Any], bounds: Sequence[np.ndarray[Any, Any] | None]
) -> float | None:
    low, high = bounds
    held = np.sort(values[~np.isnan(values)])
    given = low if low is not None else high
    if given is None:
        return None
    first = np.zeros(len(given)) if low is None else np.searchsorted(held, low, "left")
    last = np.full(len(given), len(held)) if high is None else np.searchsorted(held, high, "right")
    known = np.ones(len(given), bool)
    for bound in (low, high):
        if bound is not None:
            known &= ~np.isnan(bound)
    passed = np.maximum(last - first, 0)[known].sum()
    return float(passed) / (len(values) * len(given))


def _top(rows: pa.Table, keys: Sequence[Expr]) -> float:
    table = pa.table({f"k{i}": evaluate(k, rows) for i, k in enumerate(keys)})
    counts = table.group_by(table.column_names, use_threads=False).aggregate([([], "count_all")])
    most = int(np.max(counts["count_all"].to_numpy()))
    return (most - 1) / int(rows.num_rows)
