"""Results handed to a function of the user's, kept in the checkpoint until it has taken them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.batch import BatchId, from_bytes, to_bytes
from tidegate.errors import SinkError
from tidegate.sink.protocol import Keep, Opening
from tidegate.sink.receipt import Part, Receipt


class CallSink:
    """Gives every committed batch to a function, `function(table, batch)`.

    The batch is kept in the checkpoint until the next one has been given away, so after a crash the
    newest one is given again: the function must treat a batch number it has seen as a replacement.
    """

    parallel = False
    side_outputs = False

    def __init__(self, function: Callable[[pa.Table, int], None]) -> None:
        self.function = function
        self._opening: Opening | None = None

    def open(self, opening: Opening) -> None:
        self._opening = opening

    def begin(self, batch: BatchId) -> _KeptParts:
        return _KeptParts(self._keep, batch, self._name)

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        if not any(receipt.name == self._name for receipt in receipts):
            return  # another kind of sink was given it
        self._give(batch, self._read(batch))
        self._keep.delete(BatchId(batch - 1), self._name)

    def close(self) -> None:
        """Nothing is held open."""

    @property
    def _keep(self) -> Keep:
        assert self._opening is not None
        return self._opening.keep

    @property
    def _name(self) -> str:
        assert self._opening is not None
        return f"{self._opening.output or 'output'}.arrow"

    @property
    def _where(self) -> str:
        return f"sink {getattr(self.function, '__qualname__', repr(self.function))}"

    def _read(self, batch: BatchId) -> pa.Table:
        data = self._keep.read(batch, self._name)
        if data is None:
            raise SinkError(
                self._where,
                f"batch {batch} must be in the checkpoint until the function has taken it",
                f"no {self._name} of it",
                "Restore the checkpoint from a copy, or start from an empty one.",
            )
        return from_bytes(data)

    def _give(self, batch: BatchId, rows: pa.Table) -> None:
        try:
            self.function(rows, int(batch))
        except Exception as error:
            raise SinkError(
                self._where,
                f"must accept batch {batch}",
                f"{type(error).__name__}: {error}",
                "The batch is committed and is given again at the next start.",
            ) from error


@dataclass(frozen=True)
class _KeptParts:
    """Puts the rows of a batch, which come as one part, into the checkpoint."""

    keep: Keep
    batch: BatchId
    name: str

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        data = to_bytes(rows)
        self.keep.write(self.batch, self.name, data)
        return Receipt(self.name, rows.num_rows, len(data), zlib.crc32(data))
