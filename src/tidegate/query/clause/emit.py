"""EMIT EVERY: rows of time windows before they are final, at multiples of a duration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from tidegate.calendar.duration import Duration, duration_text, duration_us
from tidegate.errors import QueryError
from tidegate.query.clause.clause import Clause
from tidegate.query.clause.column import FINAL
from tidegate.query.grammar import DurationValue, SyntaxPart
from tidegate.query.node.node import Aggregate
from tidegate.query.node.window_process import WindowProcess
from tidegate.query.window import Use

_TIME = "Write a window of time, [RANGE 1 HOUR], or leave EMIT EVERY out."


@dataclass(frozen=True)
class EmitEvery(Clause):
    """When event time passes a multiple of `every_us`, groups that changed emit a row."""

    word: ClassVar = "EMIT"
    lead: ClassVar = ""
    parts: ClassVar = (SyntaxPart("every_us", DurationValue(), "EVERY", required=True),)
    last: ClassVar = ((FINAL, pa.bool_()),)
    early: ClassVar = True

    every_us: int

    def __post_init__(self) -> None:
        if self.every_us <= 0:
            got = duration_text(self.every_us)
            raise QueryError("EMIT EVERY", "must be longer than zero", got)

    @classmethod
    def of(cls, every: Duration) -> EmitEvery:
        return cls(duration_us(every, "emit_every"))

    @property
    def shown(self) -> str:
        return f"emit every {duration_text(self.every_us)}"

    def check(self, aggregate: Aggregate) -> None:
        aggregate.window.check(Use.EARLY, "EMIT EVERY", _TIME)
        if isinstance(aggregate, WindowProcess):
            raise QueryError(
                "EMIT EVERY", "is for aggregates", "a process", "Leave EMIT EVERY out."
            )
        for other in aggregate.clauses:
            if other.word != self.word and (other.last or other.sheds):
                raise QueryError(
                    "EMIT EVERY",
                    "is for exact answers",
                    f"also {other.where}",
                    "Leave one of them out.",
                )
        if not aggregate.window.holds_mark(self.every_us):
            raise QueryError(
                "EMIT EVERY",
                "must be shorter than the window, which gives its last row at its end",
                f"{duration_text(self.every_us)} for [{aggregate.window}]",
                "Write a shorter time, or leave EMIT EVERY out.",
            )
