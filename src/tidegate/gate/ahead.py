"""Remembers where the gate stood, so that a cut can be taken back, or made before its turn.

The positions of a cut move when it is made, not when its batch is committed. A cut that is made
ahead, while the batch before it runs, is therefore put aside when something is asked of that one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from tidegate.gate.inlet import Inlet
from tidegate.gate.track import Track, TrackMark

C = TypeVar("C")


@dataclass(frozen=True)
class GateMarks:
    """Where the tracks of a gate stand, and its frontier; costs nothing but references."""

    tracks: tuple[tuple[Track, TrackMark], ...]
    frontier_us: int

    @staticmethod
    def of(inlets: Iterable[Inlet], frontier_us: int) -> GateMarks:
        marks = ((track, track.mark()) for i in inlets for track in i.tracks.values())
        return GateMarks(tuple(marks), frontier_us)

    def go_back(self) -> int:
        """Put the tracks where they were; the frontier that was. Tracks opened since stay open."""
        for track, mark in self.tracks:
            track.go_back(mark)
        return self.frontier_us


@dataclass(frozen=True)
class CutAhead(Generic[C]):
    """A cut of at most so many rows, and where the gate stood before and after it."""

    cut: C
    limit_rows: int
    before: GateMarks
    after: GateMarks
