"""A sink that keeps nothing, for runs whose rows are only looked at or counted."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.batch import BatchId
from tidegate.sink.held import HeldParts
from tidegate.sink.protocol import Opening
from tidegate.sink.receipt import Receipt


class NothingSink:
    """Takes rows and forgets them."""

    parallel = False
    side_outputs = False

    def open(self, opening: Opening) -> None:
        """Anything can be thrown away."""

    def begin(self, batch: BatchId) -> HeldParts:
        return HeldParts()

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """Nothing was kept."""

    def close(self) -> None:
        """Nothing is held open."""
