"""Readiness, one tuple at a time: the plain twin of the gate."""

from __future__ import annotations

from dataclasses import dataclass, field

NEVER = None


@dataclass
class PlainSource:
    """A physical stream that speaks one tuple at a time."""

    disorder: int
    newest: int | None = None
    ended: bool = False
    late: list[tuple[int, int]] = field(default_factory=list)

    def speak(self, seq: int, ts: int | None) -> bool:
        """Take one tuple; whether it is in time."""
        if ts is None:
            return False
        if self.newest is not None and ts < self.newest - self.disorder:
            self.late.append((seq, ts))
            return False
        self.newest = ts if self.newest is None else max(self.newest, ts)
        return True


def plain_frontier(sources: list[PlainSource]) -> float:
    """The smallest of the sources' newest times, less their disorder."""
    reach = []
    for source in sources:
        if source.ended:
            reach.append(float("inf"))
        elif source.newest is None:
            reach.append(float("-inf"))
        else:
            reach.append(source.newest - source.disorder)
    return min(reach, default=float("inf"))
