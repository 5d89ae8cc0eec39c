"""The figures of windows: how evenly a partitioner divided the load, and what merging cost.

The equations are those of chapter 3 of the dissertation. Imbalances of tuples and of keys are
relative to the mean: 0.5 means that the fullest instance has 1.5 times the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.operate.aggregate.pane.pane import AggregateSpec
from tidegate.operate.aggregate.pane.pane_window import WindowPanes
from tidegate.operate.figures import (
    MOST_WINDOWS,
    PaneFigures,
    ShownFigure,
    ToldWindow,
    WindowFigures,
)
from tidegate.operate.kernels.group import run_starts
from tidegate.operate.kernels.order import Ints, flat, integers
from tidegate.route.ledger import Ledger
from tidegate.route.send_counts import Sent

Numbers = npt.NDArray[np.signedinteger[Any]]

MEMORY = "partition_bytes"
"""The memory of the tallies of a window: a level, so batches are not added up."""

SENT_SHOWN = (
    ShownFigure("tuple_imbalance", "tuple imbalance", "share", brief=True),
    ShownFigure("key_imbalance", "key imbalance", "share", brief=True),
    ShownFigure("hybrid_imbalance", "hybrid imbalance"),
    ShownFigure("merging_within_load", "merging within the largest load in", "share"),
    ShownFigure("partition_ms", "decided in", "ms"),
    ShownFigure(MEMORY, "memory", "bytes"),
)
MERGED_SHOWN = (
    ShownFigure("aggregation_cost", "parts per group", brief=True),
    ShownFigure("groups_split", "groups split"),
)


def sent_figures(spec: AggregateSpec, sent: Sent, ledger: Ledger | None) -> PaneFigures:
    """The figures of what a split has sent: tuples, their share of the time, the ledger's memory.

    The memory of a pane is reported for the first instance only, so that it counts once.
    """
    counts = sent.counts
    values: dict[str, npt.NDArray[np.float64] | Ints] = {"tuples": counts.tuples}
    whole = max(int(counts.tuples.sum()), 1)
    values["partition_ms"] = np.round(sent.seconds * 1e3 * counts.tuples / whole, 6)
    if ledger is not None:
        tallies = map(ledger.tallies.get, spec.window.periods(counts.panes).tolist())
        sizes = np.array([0 if tally is None else tally.nbytes for tally in tallies], np.int64)
        values[MEMORY] = np.where(counts.instances == 0, sizes, 0)
    return PaneFigures.of(spec.window.begins(counts.panes), counts.instances, values)


class WindowTotals:
    """Adds up an instance's figures of each window; keeps the newest MOST_WINDOWS.

    Windows must come in the order of their ends.
    """

    def __init__(self, window: WindowPanes) -> None:
        self._window = window
        self._held: dict[int, dict[str, float]] = {}

    def add_rows(
        self,
        ends: Ints,
        columns: Mapping[str, Numbers],
        largest: Mapping[str, npt.NDArray[np.float64]] | None = None,
    ) -> None:
        """Add rows that are sorted by the ends of their windows.

        Each name has an array with one number for each row. The numbers of `columns` are added up;
        of `largest` the greatest counts.
        """
        if not len(ends):
            return
        first = np.flatnonzero(run_starts(ends))[-MOST_WINDOWS:]
        sums = {name: np.add.reduceat(column, first) for name, column in columns.items()}
        tops = {n: np.maximum.reduceat(column, first) for n, column in (largest or {}).items()}
        for i, end_us in enumerate(ends[first].tolist()):
            held = self._held.setdefault(end_us, {})
            for name, of_windows in sums.items():
                held[name] = held.get(name, 0) + int(of_windows[i])
            for name, of_windows in tops.items():
                held[name] = max(held.get(name, 0.0), float(of_windows[i]))
        for end_us in sorted(self._held)[:-MOST_WINDOWS]:
            del self._held[end_us]

    def figures(self) -> tuple[WindowFigures, ...]:
        return tuple(
            WindowFigures(self._window.start_of(end_us), end_us, values)
            for end_us, values in self._held.items()
        )


class WindowCounts(WindowTotals):
    """Counts the groups of windows, and the parts in which they came."""

    def add(self, rows: pa.Table, sizes: Numbers | None = None) -> None:
        """Add rows of windows, sorted by `window_end`.

        Without `sizes` each row is one part of a group. With it each row is a whole group, and
        `sizes` has its number of parts.
        """
        each = np.ones(rows.num_rows, np.int64)
        columns: dict[str, Numbers] = {"parts": each}
        if sizes is not None:
            split = (sizes > 1).astype(np.int64)
            columns = {"groups": each, "parts": sizes, "groups_split": split}
        self.add_rows(integers(flat(rows.column("window_end"))), columns)


def sent_window(told: ToldWindow, p: float) -> dict[str, float]:
    """The figures of a window that instances have closed; `p` weighs tuples in the hybrid load.

    Figures of tuples are left out where the map tasks' figures are incomplete.
    """
    parts = told.each("parts")
    found = {"parts": sum(parts), "key_imbalance": imbalance(parts)}
    if told.dealt is None:
        return found
    tuples = told.each("tuples")
    return found | {
        "tuples": sum(tuples),
        "tuple_imbalance": imbalance(tuples),
        "hybrid_imbalance": hybrid_imbalance(tuples, parts, p),
        "partition_ms": told.total("partition_ms"),
        MEMORY: told.total(MEMORY),
    }


def merging_constraint(told: ToldWindow) -> dict[str, float]:
    """The constraint of equation 3.3 for merged windows: 1 where it is kept, otherwise 0.

    The parts to merge should be no more than the tuples of the fullest instance. Beyond that,
    merging is more work than any instance had before it.
    """
    if told.dealt is None:
        return {}
    largest = max(told.each("tuples"))
    within = int(sum(told.each("parts")) <= largest)
    return {"largest_load": largest, "merging_within_load": within}


def merged_window(told: ToldWindow) -> dict[str, float]:
    """The figures of a merged window; the aggregation cost is equation 3.4 for each group."""
    totals = told.totals()
    return totals | {"aggregation_cost": totals["parts"] / max(totals["groups"], 1)}


def imbalance(loads: Sequence[float]) -> float:
    """Equations 3.1 and 3.6, relative to the mean: how much more the fullest instance has."""
    mean = sum(loads) / len(loads)
    return max(loads) / mean - 1 if mean else 0.0


def hybrid_imbalance(tuples: Sequence[float], keys: Sequence[float], p: float) -> float:
    """Equation 3.10: loads are scaled to [0, 1], and are `p` tuples and `1 - p` keys."""
    pairs = zip(_scaled(tuples), _scaled(keys), strict=True)
    loads = [p * load + (1 - p) * cardinality for load, cardinality in pairs]
    return max(loads) - sum(loads) / len(loads)


def _scaled(loads: Sequence[float]) -> list[float]:
    """Equations 3.7 and 3.8; all 0 where all loads are equal."""
    low, high = min(loads), max(loads)
    return [(load - low) / (high - low) if high > low else 0.0 for load in loads]
