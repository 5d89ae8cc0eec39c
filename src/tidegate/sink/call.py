"""Hands results to functions of the user; the checkpoint keeps each batch until they took it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import pyarrow as pa

from tidegate.batch import BatchId
from tidegate.errors import SinkError
from tidegate.sink.checkpoint_staging import DroppedSides, KeptParts, part_of, read_kept
from tidegate.sink.protocol import Keep, Opening
from tidegate.sink.receipt import Part, Receipt

_log = logging.getLogger(__name__)


class CallSink:
    """Gives every committed batch that has rows to a function, `function(table, batch)`.

    Late tuples go to `late(table, batch, stream)` and unreadable ones to `rejected(table, batch)`,
    before the rows and only where there are any. Without these functions they are counted and
    dropped, and the log says so once.

    The checkpoint keeps the batch until the next one has been handed over. So after a crash the
    newest batch is handed over again: functions must treat a batch number they have seen as a
    replacement.
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
        """The kept parts of the newest batch that was handed over, by name."""
        self._dropped = DroppedSides(_log, "give {}=function to tg.sink.call")

    def __repr__(self) -> str:
        return f"CallSink({getattr(self.function, '__name__', repr(self.function))})"

    def open(self, opening: Opening) -> None:
        self._opening = opening
        self._given = {}

    def begin(self, batch: BatchId) -> KeptParts:
        assert self._opening is not None
        sides = {s for s, f in (("late", self.late), ("rejected", self.rejected)) if f}
        # The owner in the name: a paused run that wakes up must not overwrite what we have kept.
        name = f"{self._output}.{self._opening.owner:08d}"
        return KeptParts(self._keep, batch, name, frozenset(sides))

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        own = [r for r in receipts if r.name.startswith(f"{self._output}.")]
        where, until = _where(self.function), "the function has taken it"
        kept = [(r, read_kept(self._keep, batch, r, where, until)) for r in own if r.bytes]
        self._dropped.tell(where, batch, own)
        # The rows come first among receipts and last here: whoever has them has the whole batch.
        for receipt, table in reversed(kept):
            self._give(batch, part_of(receipt), table)
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
            return  # the run that wrote the batch had a function for it; this one has not
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


def _where(function: Callable[..., None]) -> str:
    return f"sink {getattr(function, '__qualname__', repr(function))}"
