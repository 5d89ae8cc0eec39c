"""What the model knows of an operator before it runs, between plans and those who predict."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.window import Window


@dataclass(frozen=True)
class Operation:
    """What decides how the work of an operator follows its input; the same for all batches.

    `kind` is what subqueries with it are called. A join has a `method`, the `windows` of its left
    and its right side, and the side that each input feeds, 0 or 1, in `sides`. `everywhere` says
    that all instances see all tuples; else they are divided among them. An aggregate over windows
    of time has windows of `range_s` seconds, of which one ends every `slide_s`.
    """

    kind: str
    method: str | None = None
    windows: tuple[Window, ...] = ()
    sides: tuple[int, ...] = ()
    everywhere: bool = False
    range_s: float = 0.0
    slide_s: float = 0.0

    @property
    def scans(self) -> bool:
        """Whether it makes all comparisons of the paper's join, whose number rates and windows say.

        Other methods make few of them, and what they take follows the tuples.
        """
        return self.method == "scan"

    def side(self, input: int) -> int:
        """Which side an input feeds; 0 where there are no sides."""
        return self.sides[input] if self.sides else 0
