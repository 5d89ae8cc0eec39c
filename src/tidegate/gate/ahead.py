"""Remembers where the gate stood, so that a cut can be undone, or made before its turn.

A cut moves positions when it is made, not when its batch is committed. So while a cut is made ahead
and the batch before it still runs, the gate is put back for every question about that batch.
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
    """The positions of all tracks of a gate, and its frontier; holds references only."""

    tracks: tuple[tuple[Track, TrackMark], ...]
    frontier_us: int

    @staticmethod
    def of(inlets: Iterable[Inlet], frontier_us: int) -> GateMarks:
        marks = ((track, track.mark()) for i in inlets for track in i.tracks.values())
        return GateMarks(tuple(marks), frontier_us)

    def go_back(self) -> int:
        """Put all tracks back; returns the frontier of then. Tracks opened since stay open."""
        for track, mark in self.tracks:
            track.go_back(mark)
        return self.frontier_us


@dataclass(frozen=True)
class CutAhead(Generic[C]):
    """A cut of at most `limit_rows` rows, and where the gate stood before and after it."""

    cut: C
    limit_rows: int
    before: GateMarks
    after: GateMarks
