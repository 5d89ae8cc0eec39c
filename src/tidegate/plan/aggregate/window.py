"""The interface of window plans: the operator for a window, and what its state depends on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from tidegate.errors import QueryError
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane.pane_window import WindowPanes
from tidegate.plan.aggregate.lowered_aggregate import AskedAggregate, PlannedAnswer
from tidegate.plan.compatibility.query_record import RecordedSubquery, Texts
from tidegate.plan.lowering.rule import Context, Lowered
from tidegate.route.hash import Hash
from tidegate.route.partitioner import Partitioner
from tidegate.route.registry import partitioner_of


class WindowPlan(ABC):
    """The plan of one kind of window. Derive from it, and add a line to `WINDOWS` in `windows.py`.

    It is created for each aggregate, from the `window` of the node.
    """

    def __init__(self, window: Any) -> None:
        self.window = window

    @property
    def panes(self) -> WindowPanes:
        """The panes of its windows; called for answers that need panes."""
        raise QueryError(
            "WITH",
            "this clause is for windows of time",
            f"[{self.window}]",
            "Write a window of time, [RANGE 1 MINUTE], or leave the clause out.",
        )

    def early(self, planned: PlannedAnswer, every_us: int) -> PlannedAnswer:
        """The answer with rows of open windows at multiples of a time."""
        raise NotImplementedError(f"[{self.window}] has no early rows")

    def shares_work(self, function: Function) -> bool:
        """Whether windows overlap so much that they share the exact work of a function."""
        return False

    def stored(self, arguments: Texts, kept: RecordedSubquery | None) -> Mapping[str, str]:
        """The names of the argument columns in the state; `arguments` gives the text of each.

        A resumed checkpoint may have other names: `kept` is its record.
        """
        return {name: name for name in arguments}

    @abstractmethod
    def subqueries(
        self, asked: AskedAggregate, planned: PlannedAnswer, context: Context
    ) -> Iterator[Lowered]:
        """The subqueries of an aggregate over it; the last one has the unit's ports."""


def asked_partitioner(asked: AskedAggregate, context: Context) -> Partitioner:
    """The partitioner of the aggregate's clause, else of the run."""
    if asked.base.partitioner is None:
        chosen, again = context.choices.partitioner, context.choices.again
        return chosen if asked.kept is None else (again or chosen).going_on(asked.kept.record.state)
    return partitioner_of(asked.base.partitioner, "partitioner")


def partitioner_by_key(asked: AskedAggregate, context: Context) -> Partitioner:
    """The same where a key's tuples must be in one place; raises if it splits keys."""
    return in_one_place(
        asked_partitioner(asked, context),
        "may split the tuples of a key only over windows of time, whose parts can be merged",
        f"[{asked.base.window}]",
        ", or write a window of time: [RANGE 1 MINUTE]",
    )


def in_one_place(partitioner: Partitioner, why: str, got: str, more: str = "") -> Partitioner:
    """The partitioner if it keeps the tuples of a key together; raises if not."""
    found = partitioner.in_one_place()
    if found is None:
        raise QueryError(f"partitioner {partitioner.text}", why, got, f"Use {Hash.name}{more}.")
    return found
