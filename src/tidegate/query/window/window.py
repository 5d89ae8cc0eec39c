"""What every kind of window says about itself, so that no caller asks which kind it has.

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
    """What may be asked of the rows of a window, and is not possible with every kind."""

    BOUND = "an answer within an error, from a sample"
    SHED = "an answer from some of the tuples"
    ORDER = "rows in another order, or only the first of them"
    PROCESS = "a mergeable process in place of aggregates"
    EARLY = "rows before a window is final"


class Window(ABC):
    """Which tuples of a group make a row together.

    `word` begins it in SQL, `parts` follow; `argument` is its size in Python's `window`, which
    `options` may follow.
    `refusals` says which uses are not possible, and why. `event_offset_us` is from the end of a
    window to the event time of its rows. `told_by` are the ends that tell its rows apart.
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
        """The window of this size that a program asks for; options may be missing."""

    @classmethod
    @abstractmethod
    def written(cls, *args: Any, **parts: Any) -> Window:
        """The window with the values of its `parts`; those that may be left out may be missing."""

    @classmethod
    @abstractmethod
    def side(cls, *args: Any, **parts: Any) -> JoinWindow:
        """The window of one side of a join, which has the same syntax."""

    @property
    @abstractmethod
    def reach_us(self) -> int:
        """How much time it may cover; 0 where it is not measured in time."""

    @property
    def longest_us(self) -> int | None:
        """How long one may be; None where there is no limit."""
        return self.reach_us

    @abstractmethod
    def __str__(self) -> str:
        """As SQL has it between brackets."""

    def row_key(self, keys: Sequence[str], early: bool) -> RowKey:
        """What tells its rows apart, given the columns of GROUP BY; `early` ones are replaced."""
        return RowKey((*self.told_by, *keys), replaces=early)

    def allows(self, use: Use) -> bool:
        return use not in self.refusals

    def check(self, use: Use, where: str, remedy: str) -> None:
        """Refuse a use that is not possible."""
        if not self.allows(use):
            raise QueryError(where, self.refusals[use], f"[{self}]", remedy)


class JoinWindow(ABC):
    """Which tuples of one side of a join may have a partner; it moves with every tuple.

    `no_shed` says why tuples of the side cannot be shed, where they cannot.
    """

    no_shed: ClassVar[str | None] = None

    @property
    @abstractmethod
    def extent(self) -> tuple[int | None, int | None]:
        """How far back it reaches: in microseconds, or else in tuples."""

    def check_side(self) -> None:  # noqa: B027
        """Refuse one that jumps; most do not."""


def slides(word: str, size: object, slide: object) -> QueryError:
    """What to say of a window with SLIDE in a join, also where it would follow itself."""
    return QueryError(
        "JOIN",
        "the window of a join moves with every tuple, so it has no SLIDE",
        f"[{word} {size} SLIDE {slide}]",
        "Leave SLIDE out.",
    )
