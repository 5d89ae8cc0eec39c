"""Results handed to functions of the user's, kept in the checkpoint until they have taken them."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.batch import BatchId, from_bytes, to_bytes
from tidegate.errors import LostOutputError, SinkError
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

    def begin(self, batch: BatchId) -> _KeptParts:
        assert self._opening is not None
        sides = {s for s, f in (("late", self.late), ("rejected", self.rejected)) if f}
        name = f"{self._output}.{self._opening.owner:08d}"  # not that of a run that was paused
        return _KeptParts(self._keep, batch, name, frozenset(sides))

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        own = [r for r in receipts if r.name.startswith(f"{self._output}.")]
        kept = [(r, self._read(batch, r)) for r in own if r.bytes]
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

    def _read(self, batch: BatchId, receipt: Receipt) -> pa.Table:
        data = self._keep.read(batch, receipt.name)
        if data is None or zlib.crc32(data) != receipt.checksum:
            raise LostOutputError(
                _where(self.function),
                f"batch {batch} must be in the checkpoint until the function has taken it",
                f"no {receipt.name} of it" if data is None else f"a damaged {receipt.name}",
                "Restore the checkpoint from a copy, or start from an empty one.",
            )
        return from_bytes(data)

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


@dataclass(frozen=True)
class _KeptParts:
    """Puts the rows of a batch, which come as one part, and its side outputs into the checkpoint.

    Of a side output that nobody takes only the receipt is kept, which says how many rows it had.
    """

    keep: Keep
    batch: BatchId
    name: str
    sides: frozenset[str]

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        label = ".".join(filter(None, (part.side, _file_name(part.stream))))
        name = f"{self.name}.{label}.arrow" if label else f"{self.name}.arrow"
        what = {"number": part.number, "side": part.side, "stream": part.stream}
        if part.side and part.side not in self.sides:
            return Receipt(name, rows.num_rows, more=what)
        data = to_bytes(rows)
        self.keep.write(self.batch, name, data)
        return Receipt(name, rows.num_rows, len(data), zlib.crc32(data), what)


def _file_name(stream: str) -> str:
    """A stream's name where it may stand in a file's; others are told apart by their bytes."""
    return stream if stream.isalnum() and stream.isascii() else stream.encode().hex()
