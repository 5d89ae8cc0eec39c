"""The kinds of joins: which rows come of pairs, and which of tuples that have no partner."""

from __future__ import annotations

from dataclasses import dataclass

LEFT, RIGHT = 0, 1
"""The numbers of the sides."""

OWN = "own"
"""The column with the time that a row shows as `ts`, where that is not its event time."""


@dataclass(frozen=True)
class JoinKind:
    """What a join puts out.

    `tracked` are the sides whose tuples must know whether they have a partner. With `pairs` the
    join puts out every pair, with `first` a tracked tuple at its first pair, with `unmatched` a
    tracked tuple without a partner once none can come any more. `summary` is for people.
    """

    summary: str
    tracked: tuple[int, ...] = ()
    pairs: bool = True
    first: bool = False
    unmatched: bool = False

    @property
    def shown(self) -> tuple[int, ...]:
        """The sides whose columns an output row has."""
        return (LEFT, RIGHT) if self.pairs else self.tracked

    @property
    def home(self) -> int | None:
        """The tracked side, where there is exactly one."""
        return self.tracked[0] if len(self.tracked) == 1 else None

    def filters(self, side: int) -> bool:
        """Whether tuples that a condition on their side alone refuses may be dropped at once."""
        return not self.unmatched or side not in self.tracked

    def can_miss(self, side: int) -> bool:
        """Whether a row may have NULLs in place of a tuple of a side."""
        return self.pairs and self.unmatched and 1 - side in self.tracked


INNER = JoinKind("join")
LEFT_OUTER = JoinKind("left join", (LEFT,), unmatched=True)
RIGHT_OUTER = JoinKind("right join", (RIGHT,), unmatched=True)
FULL_OUTER = JoinKind("full join", (LEFT, RIGHT), unmatched=True)
SEMI = JoinKind("semi join", (LEFT,), pairs=False, first=True)
ANTI = JoinKind("anti join", (LEFT,), pairs=False, unmatched=True)

SPARK_NAMES = {
    "inner": INNER,
    "left": LEFT_OUTER,
    "right": RIGHT_OUTER,
    "full": FULL_OUTER,
    "semi": SEMI,
    "anti": ANTI,
    "outer": FULL_OUTER,
    "leftouter": LEFT_OUTER,
    "rightouter": RIGHT_OUTER,
    "fullouter": FULL_OUTER,
    "leftsemi": SEMI,
    "leftanti": ANTI,
}
"""The kinds by their names in Spark, without underscores."""
