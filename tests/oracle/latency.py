"""Latency, one tuple at a time: the plain twin of what is measured from few marks per source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.oracle.gate import PlainSource


@dataclass
class PlainTuple:
    """A tuple that has arrived; `aside` where it is late or has no time."""

    ts: int | None
    arrived_at: float
    aside: bool
    answered: bool = False


@dataclass
class PlainLatency:
    """All tuples of some sources, each with the time of its arrival."""

    hold: bool
    ready_at: float
    speakers: list[PlainSource]
    tuples: list[list[PlainTuple]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tuples = [[] for _ in self.speakers]

    def arrive(self, source: int, ts: int | None, at: float) -> None:
        in_time = self.speakers[source].speak(len(self.tuples[source]), ts)
        self.tuples[source].append(PlainTuple(ts, at, not in_time))

    def committed(self, taken: Sequence[int], frontier: float, at: float) -> list[float]:
        """The latencies of the tuples that a batch is the first to answer.

        `taken` is how many tuples of each source were read by then.
        """
        found = []
        for count, every in zip(taken, self.tuples, strict=True):
            for one in every[:count]:
                ready = one.ts is not None and one.ts < frontier
                if not one.answered and (not self.hold or one.aside or ready):
                    one.answered = True
                    found.append(at - max(one.arrived_at, self.ready_at))
        return found


def plain_quantile(values: Sequence[float], share: float) -> float:
    """The least value that so large a share of them does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]
