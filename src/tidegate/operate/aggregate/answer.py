"""The interface of answers: they turn the states of a closed window into the columns of its rows.

The plan of an aggregate has one `WindowAnswer`. `WindowAggregate` uses it where it closes windows
itself. Where it closes windows in part, it has a `PartAnswer`, and `MergeWindows` has the answer.
The methods here give exact answers. Other answers override them (`shed_figures.py`, `bounded/`,
`balanced/`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import pyarrow as pa

from tidegate.operate.aggregate.figures import MERGED_SHOWN, merged_window
from tidegate.operate.aggregate.pane.fold_placement import Folding
from tidegate.operate.aggregate.pane.pane import AggregateSpec, results_of
from tidegate.operate.figures import ShownFigure, ToldWindow, Values, WindowFigures
from tidegate.operate.keeper import Keeper
from tidegate.operate.kernels.family import States
from tidegate.operate.operator import InstanceWork, MapWork, Share
from tidegate.state.segment.segment import Segment

Channels = Mapping[str, Sequence[pa.Table]]
"""The tables that arrived at an instance, by channel."""


class AnswerBatch:
    """An answer in one batch of one instance; this one is exact.

    The methods are called in the order in which they are listed here.
    """

    def __init__(self, spec: AggregateSpec) -> None:
        self._spec = spec

    def segments(self) -> dict[str, tuple[Segment, ...]]:
        """Write what the answer keeps of this batch: segments by the part of the state."""
        return {}

    def closed(self, windows: pa.Table, partly: bool) -> pa.Table:
        """The rows for some closed windows; called for each step of them.

        `windows` has states with `partly`, and where the answer is `from_states`. Otherwise it has
        the results of the functions. With `partly` the answer gives states too.
        """
        self.see(windows)
        return windows

    def merged(self, heads: Sequence[pa.Array], states: Sequence[States]) -> pa.Table:
        """The rows for windows whose parts were merged.

        `heads` are the columns of window ends and keys; `states` has those of each function.
        """
        return results_of(self._spec, heads, states)

    def see(self, rows: pa.Table) -> None:
        """Look at answered rows, sorted by `window_end`, for the figures.

        A merge calls it with all of its rows, also those that were answered before the merge.
        """

    def figures(self) -> tuple[WindowFigures, ...]:
        """The figures of the newest windows; called once, at the end of the batch."""
        return ()

    def counts(self) -> dict[str, int]:
        """What the answer adds to the counts of the batch."""
        return {}


class WindowAnswer:
    """Derive from it as a frozen dataclass; it must pickle, because a plan carries it to tasks."""

    partly: ClassVar[bool] = False
    """Whether it gives states, which another operator merges and answers."""

    from_states: ClassVar[bool] = False
    """Whether it needs the states of windows, not the results of their functions. Then the ports
    are over the columns of its own `schema`."""

    together: ClassVar[bool] = False
    """Whether it needs all groups of a window at one instance."""

    piecewise: ClassVar[bool] = True
    """Whether instances may answer some windows themselves while the merge answers the others."""

    counts_groups: ClassVar[bool] = True
    """Whether a merge counts groups and their parts for the summary of the query."""

    shown: ClassVar[tuple[ShownFigure, ...]] = ()
    """The figures of windows that people see, beside those that every merge has."""

    finish: ClassVar[str] = "finish windows: one task per instance, shuffle by bucket"
    """What a merge does, as a plan says it."""

    adds: ClassVar[bool] = False
    """Whether a later query may have more functions, whose states begin empty."""

    def renamed(self, names: Mapping[str, str]) -> Self:
        """The same answer over states with other names."""
        return self

    def schema(self, spec: AggregateSpec) -> pa.Schema:
        """The columns of answered windows: their ends, the keys, then what ports are over."""
        return spec.result_schema

    def routed_by(self, spec: AggregateSpec) -> list[str]:
        """The columns by which parts of windows are brought together."""
        return [name for name, _ in spec.keys]

    def beside(
        self, work: MapWork, spec: AggregateSpec, folding: Folding, dealt: pa.Table
    ) -> list[Share]:
        """What a map task sends on a channel of the answer's own, beside what it has dealt."""
        return []

    def keepers(self, spec: AggregateSpec) -> dict[str, Keeper]:
        """The keepers of what comes on that channel."""
        return {}

    def batch(self, spec: AggregateSpec, work: InstanceWork, came: Channels) -> AnswerBatch:
        """Start a batch where windows are closed or merged."""
        return AnswerBatch(spec)

    def part_batch(self, spec: AggregateSpec, work: InstanceWork, came: Channels) -> AnswerBatch:
        """Start a batch where windows are closed in part."""
        return AnswerBatch(spec)

    def window(self, told: ToldWindow) -> dict[str, float]:
        """The figures of a window, from what its instances reported."""
        return {}

    def merged_window(self, told: ToldWindow) -> Values:
        """The figures of a window that was merged."""
        return merged_window(told) | self.window(told)

    @property
    def merged_shown(self) -> tuple[ShownFigure, ...]:
        """The figures of a merge that people see."""
        return (*self.shown, *MERGED_SHOWN)

    def title(self, keys: str) -> str:
        """What a merge does, in one line."""
        return f"merge windows by {keys}"

    def held_lines(self) -> list[str]:
        """The lines of a plan at the operator that keeps the panes."""
        return []

    def lines(self) -> list[str]:
        """The lines of a plan at the operator that answers windows."""
        return []


@dataclass(frozen=True)
class ExactAnswer(WindowAnswer):
    """Gives the results of the functions.

    `because` has lines for a plan, where a clause such as WITH ERROR changes nothing.
    """

    because: tuple[str, ...] = ()
    adds: ClassVar[bool] = True

    def held_lines(self) -> list[str]:
        return list(self.because)


@dataclass(frozen=True)
class PartAnswer(WindowAnswer):
    """Gives the states of windows by bucket, for a `MergeWindows` with the answer `of`."""

    of: WindowAnswer

    partly: ClassVar[bool] = True

    @property
    def from_states(self) -> bool:  # type: ignore[override]
        return self.of.from_states

    @property
    def piecewise(self) -> bool:  # type: ignore[override]
        return self.of.piecewise

    def beside(
        self, work: MapWork, spec: AggregateSpec, folding: Folding, dealt: pa.Table
    ) -> list[Share]:
        return self.of.beside(work, spec, folding, dealt)

    def keepers(self, spec: AggregateSpec) -> dict[str, Keeper]:
        return self.of.keepers(spec)

    def batch(self, spec: AggregateSpec, work: InstanceWork, came: Channels) -> AnswerBatch:
        return self.of.part_batch(spec, work, came)

    def held_lines(self) -> list[str]:
        return self.of.held_lines()
