"""What a plan asks of a window: the operator that it takes, and what a state of it depends on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from tidegate.errors import QueryError
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane_window import WindowPanes
from tidegate.plan.aggregate.asked import AskedAggregate, PlannedAnswer
from tidegate.plan.lowered import Context, Lowered
from tidegate.plan.recorded import RecordedSubquery, Texts
from tidegate.route.hash import Hash
from tidegate.route.partitioner import Partitioner
from tidegate.route.registry import partitioner_of


class WindowPlan(ABC):
    """A kind of window; derive from it, and add a line to `WINDOWS` in `windows.py`.

    It is made anew for each aggregate, from the `window` of the node.
    """

    def __init__(self, window: Any) -> None:
        self.window = window

    @property
    def panes(self) -> WindowPanes:
        """The panes of its windows, for answers that need them."""
        raise QueryError(
            "WITH",
            "this clause is for windows of time",
            f"[{self.window}]",
            "Write a window of time, [RANGE 1 MINUTE], or leave the clause out.",
        )

    def early(self, planned: PlannedAnswer, every_us: int) -> PlannedAnswer:
        """The same with rows of open windows at multiples of a time; refused before where not."""
        raise NotImplementedError(f"[{self.window}] has no early rows")

    def shares_work(self, function: Function) -> bool:
        """Whether windows overlap so much that they share the exact work of a function."""
        return False

    def stored(self, arguments: Texts, kept: RecordedSubquery | None) -> Mapping[str, str]:
        """The names of the argument columns, where they are stored; `arguments` says what each is.

        A checkpoint may have other names for them: `kept` is what it has.
        """
        return {name: name for name in arguments}

    @abstractmethod
    def subqueries(
        self, asked: AskedAggregate, planned: PlannedAnswer, context: Context
    ) -> Iterator[Lowered]:
        """The subqueries of an aggregate over it; the last one has the ports of the unit."""


def asked_partitioner(asked: AskedAggregate, context: Context) -> Partitioner:
    """Who places tuples: as the aggregate says, else as the run does."""
    if asked.base.partitioner is None:
        chosen, again = context.choices.partitioner, context.choices.again
        return chosen if asked.kept is None else (again or chosen).going_on(asked.kept.record.state)
    return partitioner_of(asked.base.partitioner, "partitioner")


def partitioner_by_key(asked: AskedAggregate, context: Context) -> Partitioner:
    """The same where all tuples of a key must be in one place; refuse one that splits keys."""
    return in_one_place(
        asked_partitioner(asked, context),
        "may split the tuples of a key only over windows of time, whose parts can be merged",
        f"[{asked.base.window}]",
        ", or write a window of time: [RANGE 1 MINUTE]",
    )


def in_one_place(partitioner: Partitioner, why: str, got: str, more: str = "") -> Partitioner:
    """The partitioner where it keeps the tuples of a key together; refuse one that does not."""
    found = partitioner.in_one_place()
    if found is None:
        raise QueryError(f"partitioner {partitioner.text}", why, got, f"Use {Hash.name}{more}.")
    return found
