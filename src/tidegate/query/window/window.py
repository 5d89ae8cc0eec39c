"""The interface of every kind of window, so that no caller asks which kind it has.

A new kind of window is one file here and a line in `registry.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from tidegate.errors import QueryError
from tidegate.query.name import WINDOW
from tidegate.query.row_key import RowKey

if TYPE_CHECKING:
    from tidegate.query.grammar import SyntaxPart


class Use(Enum):
    """What can be asked of a window's rows, but not of every kind of window."""

    BOUND = "an answer within an error, from a sample"
    SHED = "an answer from some of the tuples"
    ORDER = "rows in another order, or only the first of them"
    PROCESS = "a mergeable process in place of aggregates"
    EARLY = "rows before a window is final"


class Window(ABC):
    """Which tuples of a group make a row together.

    In SQL `word` begins the window and `parts` follow. In Python `argument` is its size in
    `window(...)`, with `options`. `refusals` says which uses are impossible, and why. The event
    time of a row is the window's end plus `event_offset_us`. `told_by` are the window columns that
    identify its rows.
    """

    word: ClassVar[str]
    parts: ClassVar[tuple[SyntaxPart, ...]]
    argument: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = ("slide",)
    refusals: ClassVar[Mapping[Use, str]] = {}
    event_offset_us: ClassVar[int] = 0
    told_by: ClassVar[tuple[str, ...]] = WINDOW

    @classmethod
    @abstractmethod
    def of(cls, *size: Any, **options: Any) -> Window:
        """The window for a program's arguments; options may be missing."""

    @classmethod
    @abstractmethod
    def written(cls, *args: Any, **parts: Any) -> Window:
        """The window for the values of its `parts`; optional ones may be missing."""

    @classmethod
    @abstractmethod
    def side(cls, *args: Any, **parts: Any) -> JoinWindow:
        """The window of one side of a join, from the same syntax."""

    @property
    @abstractmethod
    def reach_us(self) -> int:
        """How much time it covers; 0 if it is not measured in time."""

    @property
    def longest_us(self) -> int | None:
        """The longest it can be; None without a limit."""
        return self.reach_us

    @abstractmethod
    def __str__(self) -> str:
        """The window in SQL, without brackets."""

    def row_key(self, keys: Sequence[str], early: bool) -> RowKey:
        """The columns that identify its rows, with the keys; `early` rows are replaced later."""
        return RowKey((*self.told_by, *keys), replaces=early)

    def allows(self, use: Use) -> bool:
        return use not in self.refusals

    def check(self, use: Use, where: str, remedy: str) -> None:
        """Raises if a use is impossible."""
        if not self.allows(use):
            raise QueryError(where, self.refusals[use], f"[{self}]", remedy)


class JoinWindow(ABC):
    """Which tuples of one side of a join can have a partner; it moves with every tuple.

    `no_shed` says why tuples of the side cannot be shed; None if they can.
    """

    no_shed: ClassVar[str | None] = None

    @property
    @abstractmethod
    def extent(self) -> tuple[int | None, int | None]:
        """How far back it reaches: in microseconds, or else in tuples."""

    def check_side(self) -> None:  # noqa: B027
        """Raises for a window with a slide; most kinds have none here."""


def slides(window: object) -> QueryError:
    """The error for a window with a slide in a join."""
    return QueryError(
        "JOIN",
        "the window of a join moves with every tuple, so it has no SLIDE",
        f"[{window}]",
        "Leave SLIDE out.",
    )
