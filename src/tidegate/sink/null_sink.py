"""Discards every row, for runs whose rows are only looked at or counted."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.batch import BatchId
from tidegate.sink.batch_output import HeldParts
from tidegate.sink.protocol import Opening
from tidegate.sink.receipt import Receipt
from tidegate.sink.side_text import SideText


class NothingSink:
    """Takes rows and forgets them; side outputs are written where they are asked for."""

    parallel = False

    def __init__(self, sides: SideText | None = None) -> None:
        self.side_outputs = sides is not None
        self.uri = None
        self._sides = sides
        self._held = HeldParts()

    def open(self, opening: Opening) -> None:
        """Anything can be thrown away."""

    def begin(self, batch: BatchId) -> HeldParts:
        self._held = HeldParts()
        return self._held

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        held, self._held = self._held, HeldParts()
        if self._sides is not None:
            self._sides.write(held.output())

    def close(self) -> None:
        """Nothing is held open."""
