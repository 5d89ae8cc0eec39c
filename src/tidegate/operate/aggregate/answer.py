"""How closed windows are answered: from the states of their groups to the columns of their rows.

An aggregate has one `WindowAnswer`, chosen when its query is planned. `WindowAggregate` asks it
where it closes windows itself. Where windows are closed in part, the aggregate has `PartAnswer` and
`MergeWindows` has the answer. The exact answer is the default of every method here; others are a
file each (`shed_figures`, `bounded/`, `balanced/`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import pyarrow as pa

from tidegate.operate.aggregate.figures import MERGED_SHOWN, merged_window
from tidegate.operate.aggregate.folding import Folding
from tidegate.operate.aggregate.pane import AggregateSpec, results_of
from tidegate.operate.figures import ShownFigure, ToldWindow, Values, WindowFigures
from tidegate.operate.keeper import Keeper
from tidegate.operate.kernels.family import States
from tidegate.operate.operator import InstanceWork, MapWork, Share
from tidegate.state.segment import Segment

Channels = Mapping[str, Sequence[pa.Table]]
"""What arrived at an instance, by channel."""


class AnswerBatch:
    """An answer at work in one batch of an instance; the calls come in the order they stand here.

    This one is exact.
    """

    def __init__(self, spec: AggregateSpec) -> None:
        self._spec = spec

    def segments(self) -> dict[str, tuple[Segment, ...]]:
        """What it stores of this batch, by its keepers."""
        return {}

    def closed(self, windows: pa.Table, partly: bool) -> pa.Table:
        """Rows for a step of closed windows.

        They come as results of the functions, or as states with `partly` and where the answer is
        `from_states`; with `partly` states are also what it gives.
        """
        self.see(windows)
        return windows

    def merged(self, heads: Sequence[pa.Array], states: Sequence[States]) -> pa.Table:
        """Rows for windows whose parts were merged: of each its ends and keys, and its states."""
        return results_of(self._spec, heads, states)

    def see(self, rows: pa.Table) -> None:
        """Answered rows, sorted by `window_end`; a merge calls it, with rows that came answered."""

    def figures(self) -> tuple[WindowFigures, ...]:
        """What is told of the newest windows; called once."""
        return ()

    def counts(self) -> dict[str, int]:
        """What is added to the counts of the batch."""
        return {}


class WindowAnswer:
    """Derive from it as a frozen dataclass; a plan carries it to the tasks, so it is picklable."""

    partly: ClassVar[bool] = False
    """Whether it gives states, for another operator to merge and answer."""

    from_states: ClassVar[bool] = False
    """Whether it answers from the states of windows, not from the results of their functions; then
    ports are over columns of its own."""

    together: ClassVar[bool] = False
    """Whether it needs all groups of a window at one instance."""

    piecewise: ClassVar[bool] = True
    """Whether rows of some windows may come answered to the merge of the others."""

    counts_groups: ClassVar[bool] = True
    """Whether a merge counts groups and their parts for the summary of the query."""

    shown: ClassVar[tuple[ShownFigure, ...]] = ()
    """The figures that people see of windows, beside those of any merge."""

    finish: ClassVar[str] = "finish windows: one task per instance, shuffle by bucket"
    """The step of a merge, in a plan."""

    adds: ClassVar[bool] = False
    """Whether a later query may have more functions, whose states begin empty."""

    def renamed(self, names: Mapping[str, str]) -> Self:
        """The same over states of other names."""
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
        """What a split sends on a channel of the answer's own, beside what it has dealt."""
        return []

    def keepers(self, spec: AggregateSpec) -> dict[str, Keeper]:
        """How it keeps what comes on its channel."""
        return {}

    def batch(self, spec: AggregateSpec, work: InstanceWork, came: Channels) -> AnswerBatch:
        """The answer at work where windows are closed or merged."""
        return AnswerBatch(spec)

    def part_batch(self, spec: AggregateSpec, work: InstanceWork, came: Channels) -> AnswerBatch:
        """The answer at work where windows are closed in part."""
        return AnswerBatch(spec)

    def window(self, told: ToldWindow) -> dict[str, float]:
        """The figures of a window, from what its instances told."""
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
        """What a plan says of it where panes are held."""
        return []

    def lines(self) -> list[str]:
        """What a plan says of it where windows are answered."""
        return []


@dataclass(frozen=True)
class ExactAnswer(WindowAnswer):
    """The results of the functions. `because` is what a plan says of a clause that comes to it."""

    because: tuple[str, ...] = ()
    adds: ClassVar[bool] = True

    def held_lines(self) -> list[str]:
        return list(self.because)


@dataclass(frozen=True)
class PartAnswer(WindowAnswer):
    """States of windows by bucket, for a `MergeWindows` with the answer `of`."""

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
