"""Sessions: [SESSION GAP 30 MINUTES], [SESSION GAP 30 MINUTES MAX 2 HOURS]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NoReturn

from tidegate.calendar.duration import Duration, duration_text, duration_us, session_text
from tidegate.errors import QueryError
from tidegate.query.grammar import DurationValue, SyntaxPart
from tidegate.query.name import WINDOW
from tidegate.query.window.window import Use, Window


@dataclass(frozen=True)
class SessionWindow(Window):
    """Tuples of a group that each come at most a gap after the one before.

    A session lasts from its first tuple until a gap after its last; the event time of its row is
    that end. A tuple more than `max_us` after the first begins another session.
    """

    word: ClassVar = "SESSION"
    argument: ClassVar = "session"
    options: ClassVar = ("max",)
    parts: ClassVar = (
        SyntaxPart("gap_us", DurationValue(), "GAP", required=True),
        SyntaxPart("max_us", DurationValue(), "MAX"),
    )
    refusals: ClassVar = {
        Use.BOUND: "is for windows of time; how long a session is depends on all its tuples",
        Use.SHED: "is for windows of time: a session would fall apart where tuples are shed",
        Use.ORDER: "each session ends at a time of its own, and comes then: there is nothing to "
        "order it among",
    }

    told_by: ClassVar = WINDOW[:1]

    gap_us: int
    max_us: int | None = None

    def __post_init__(self) -> None:
        for word, length_us in (("GAP", self.gap_us), ("MAX", self.max_us)):
            if length_us is not None and length_us <= 0:
                got = duration_text(length_us)
                raise QueryError("window", f"{word} of a session must be longer than zero", got)

    @classmethod
    def of(cls, size: Duration, max: Duration | None = None) -> SessionWindow:
        longest = None if max is None else duration_us(max, "window max")
        return cls(duration_us(size, "window session"), longest)

    @classmethod
    def written(cls, gap_us: int, max_us: int | None = None) -> SessionWindow:
        return cls(gap_us, max_us)

    @classmethod
    def side(cls, gap_us: int, max_us: int | None = None) -> NoReturn:
        raise QueryError(
            "JOIN",
            "the window of a join moves with every tuple, and a session does not",
            f"[{cls(gap_us, max_us)}]",
            "Write how much earlier a partner may be: [RANGE 5 MINUTES].",
        )

    @property
    def reach_us(self) -> int:
        return self.gap_us

    @property
    def longest_us(self) -> int | None:
        return None if self.max_us is None else self.max_us + self.gap_us

    def __str__(self) -> str:
        return session_text(self.gap_us, self.max_us)
