"""How far back the windows of an operator reach, in time or in tuples."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.calendar.duration import duration_text


@dataclass(frozen=True)
class Reach:
    """A length of time, a number of tuples of an input, or both if windows of inputs differ."""

    us: int = 0
    tuples: int = 0

    @property
    def text(self) -> str:
        """In words: what has to pass until no window has what is stored now."""
        parts = [f"{duration_text(self.us)} of time"] if self.us or not self.tuples else []
        parts += [f"{self.tuples:,} tuples of an input"] if self.tuples else []
        return " and ".join(parts)
