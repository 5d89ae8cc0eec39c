"""The interface of windows. Callers ask a window for its properties and never for its kind.

A new kind of window is one file here and one line in `registry.py`.
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
    """Features of a query over a window that not every kind of window supports."""

    BOUND = "an answer within an error, from a sample"
    SHED = "an answer from some of the tuples"
    ORDER = "rows in another order, or only the first of them"
    PROCESS = "a mergeable process in place of aggregates"
    EARLY = "rows before a window is final"


class Window(ABC):
    """Decides which tuples of a group make one row together.

    - `word` begins the window in SQL, `parts` follow. `argument` is the name of its size in
      Python's `window`, and `options` are its other arguments.
    - `refusals` are the uses that it does not support, with the reasons.
    - `event_offset_us` is the time from the end of a window to the event time of its rows.
    - `told_by` are the columns of its ends that identify its rows.
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
        """The window that a Python program asks for; options may be missing."""

    @classmethod
    @abstractmethod
    def written(cls, *args: Any, **parts: Any) -> Window:
        """The window from the values of its SQL `parts`; optional ones may be missing."""

    @classmethod
    @abstractmethod
    def side(cls, *args: Any, **parts: Any) -> JoinWindow:
        """The window of one side of a join, which has the same syntax."""

    @property
    @abstractmethod
    def reach_us(self) -> int:
        """The most time that it covers; 0 if it is not measured in time."""

    @property
    def longest_us(self) -> int | None:
        """The longest that one window may be; None if there is no limit."""
        return self.reach_us

    def holds_mark(self, every_us: int) -> bool:
        """Whether a window can be open at a multiple of `every_us`."""
        return True

    @abstractmethod
    def __str__(self) -> str:
        """The text that SQL has between brackets."""

    def row_key(self, keys: Sequence[str], early: bool) -> RowKey:
        """The key of its rows, given the columns of GROUP BY; with `early`, rows get replaced."""
        return RowKey((*self.told_by, *keys), replaces=early)

    def allows(self, use: Use) -> bool:
        return use not in self.refusals

    def check(self, use: Use, where: str, remedy: str) -> None:
        """Raise a QueryError if the window does not support a use."""
        if not self.allows(use):
            raise QueryError(where, self.refusals[use], f"[{self}]", remedy)


class JoinWindow(ABC):
    """Decides which tuples of one side of a join may have a partner; it moves with every tuple.

    `no_shed` is the reason why tuples of the side cannot be shed; None if they can.
    """

    no_shed: ClassVar[str | None] = None

    @property
    @abstractmethod
    def extent(self) -> tuple[int | None, int | None]:
        """How far back it reaches: (microseconds, None) or (None, tuples)."""

    def check_side(self) -> None:  # noqa: B027
        """Raise a QueryError for a window that hops instead of moving; the default allows it."""


def slides(word: str, size: object, slide: object) -> QueryError:
    """The error for a window with SLIDE in a join, also one that slides by its own size."""
    return QueryError(
        "JOIN",
        "the window of a join moves with every tuple, so it has no SLIDE",
        f"[{word} {size} SLIDE {slide}]",
        "Leave SLIDE out.",
    )
