"""Keeps a policy from undoing its last change before that has shown what it does.

The batch of a switch, and what waited before it, say little of the new mapping. So a change of the
other way waits for some batches and intervals with it; one of the same way does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidegate.model.observation import Observation

_DOWN_BATCHES, _DOWN_INTERVALS = 5, 3
"""So long instances stay that have just come: too many cost less than another switch."""

_UP_BATCHES, _UP_INTERVALS = 2, 1
"""So long others stay away that have just gone, though the work may be more than there is room."""


@dataclass(frozen=True)
class LastTurn:
    """What a policy asked for last: the batch, up (1) or down (-1), and how many instances.

    `intervals` are those that have been over since with that many. Without a change, `way` is 0.
    """

    batch: int = -1
    way: int = 0
    instances: int = 0
    intervals: int = 0

    def after_interval(self, seen: Observation) -> LastTurn:
        """With one more interval; nothing where somebody else has changed the instances since."""
        if not self.way:
            return self
        if seen.mapping.instances != self.instances:
            return LastTurn() if seen.batch > self.batch + 1 else self
        return replace(self, intervals=self.intervals + 1)

    def allows(self, seen: Observation, wanted: int) -> bool:
        """Whether there may be so many instances after a batch."""
        way = _way(seen.mapping.instances, wanted)
        if way != -self.way or not self.way:
            return True
        down = way < 0
        batches = _DOWN_BATCHES if down else _UP_BATCHES
        intervals = _DOWN_INTERVALS if down else _UP_INTERVALS
        # The batch after the one that asked has the switch, and its interval the work before it.
        return seen.batch - self.batch > batches and self.intervals > intervals

    def asked(self, seen: Observation, wanted: int) -> LastTurn:
        """After so many instances were asked for."""
        return LastTurn(seen.batch, _way(seen.mapping.instances, wanted), wanted)

    def recorded(self) -> list[int]:
        """As a manifest has it."""
        return [self.batch, self.way, self.instances, self.intervals]

    @staticmethod
    def restored(recorded: Sequence[int]) -> LastTurn:
        """What `recorded` gave; that of a memory without it is empty."""
        return LastTurn(*recorded)


def _way(before: int, after: int) -> int:
    return (after > before) - (after < before)
