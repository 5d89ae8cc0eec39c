"""Results handed to functions of the user's, kept in the checkpoint until they have taken them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import pyarrow as pa

from tidegate.batch import BatchId
from tidegate.errors import SinkError
from tidegate.sink.kept import KeptParts, read_kept
from tidegate.sink.protocol import Keep, Opening
from tidegate.sink.receipt import Part, Receipt

_log = logging.getLogger(__name__)


class CallSink:
    """Gives every committed batch that has rows to a function, `function(table, batch)`.

    Late tuples go to `late(table, batch, stream)` and those that could not be read to
    `rejected(table, batch)`, before the rows and only where there are any. Without these functions
    they are dropped, which the log says once, and counted.

    The batch is kept in the checkpoint until the next one has been given away, so after a crash the
    newest one is given again: functions must treat a batch number they have seen as a replacement.
    """

    parallel = False
    side_outputs = True
    uri = None

    def __init__(
        self,
        function: Callable[[pa.Table, int], None],
        *,
        late: Callable[[pa.Table, int, str], None] | None = None,
        rejected: Callable[[pa.Table, int], None] | None = None,
    ) -> None:
        self.function = function
        self.late = late
        self.rejected = rejected
        self._opening: Opening | None = None
        self._given: dict[str, BatchId] = {}
        """What is kept of batches that have been given away, by name."""
        self._told: set[str] = set()
        """The side outputs that were said to be dropped."""

    def __repr__(self) -> str:
        return f"CallSink({getattr(self.function, '__name__', repr(self.function))})"

    def open(self, opening: Opening) -> None:
        self._opening = opening
        self._given = {}

    def begin(self, batch: BatchId) -> KeptParts:
        assert self._opening is not None
        sides = {s for s, f in (("late", self.late), ("rejected", self.rejected)) if f}
        name = f"{self._output}.{self._opening.owner:08d}"  # not that of a run that was paused
        return KeptParts(self._keep, batch, name, frozenset(sides))

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        own = [r for r in receipts if r.name.startswith(f"{self._output}.")]
        where, until = _where(self.function), "the function has taken it"
        kept = [(r, read_kept(self._keep, batch, r, where, until)) for r in own if r.bytes]
        for receipt in own:
            if not receipt.bytes:
                self._tell_dropped(batch, str(receipt.more["side"]))
        # The rows come first among receipts and last here: who has them has all of the batch.
        for receipt, table in reversed(kept):
            self._give(batch, Part(**receipt.more), table)
        for name, earlier in self._given.items():
            self._keep.delete(earlier, name)
        self._given = {r.name: batch for r, _ in kept}

    def close(self) -> None:
        """Nothing is held open."""

    @property
    def _keep(self) -> Keep:
        assert self._opening is not None
        return self._opening.keep

    @property
    def _output(self) -> str:
        assert self._opening is not None
        return self._opening.output or "output"

    def _give(self, batch: BatchId, part: Part, rows: pa.Table) -> None:
        function = {"late": self.late, "rejected": self.rejected}.get(part.side, self.function)
        if function is None:
            return  # the run that has written it had one
        stream = (part.stream,) if part.side == "late" else ()
        try:
            function(rows, int(batch), *stream)
        except Exception as error:
            raise SinkError(
                _where(function),
                f"must accept batch {batch}",
                f"{type(error).__name__}: {error}",
                "The batch is committed and is given again at the next start.",
            ) from error

    def _tell_dropped(self, batch: BatchId, side: str) -> None:
        if side not in self._told:
            self._told.add(side)
            _log.warning(
                "%s: rows that are %s, from batch %d on, are counted and dropped. To have them, "
                "give %s=function to tg.sink.call.",
                *(_where(self.function), side, batch, side),
            )


def _where(function: Callable[..., None]) -> str:
    return f"sink {getattr(function, '__qualname__', repr(function))}"
