"""Keeps the parts of a batch in the checkpoint, for sinks whose place cannot stage."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

from tidegate.batch import BatchId, from_bytes, to_bytes
from tidegate.errors import LostOutputError
from tidegate.sink.protocol import Keep
from tidegate.sink.receipt import Part, Receipt


def kept_bytes(keep: Keep, batch: BatchId, receipt: Receipt, where: str, until: str) -> bytes:
    """The bytes of a part that the checkpoint keeps; a LostOutputError where they are not whole.

    `until` says in the message how long the part must be there.
    """
    data = keep.read(batch, receipt.name)
    if data is None or zlib.crc32(data) != receipt.checksum:
        raise LostOutputError(
            where,
            f"batch {batch} must be in the checkpoint until {until}",
            f"no {receipt.name} of it" if data is None else f"a damaged {receipt.name}",
            "Restore the checkpoint from a copy, or start from an empty one.",
        )
    return data


def read_kept(keep: Keep, batch: BatchId, receipt: Receipt, where: str, until: str) -> pa.Table:
    """The rows of a part that `KeptParts` wrote; errors as `kept_bytes`."""
    return from_bytes(kept_bytes(keep, batch, receipt, where, until))


def part_of(receipt: Receipt) -> Part:
    """The part that a receipt of `KeptParts` confirms."""
    return Part(*(receipt.more[name] for name in ("number", "side", "stream")))


@dataclass(frozen=True)
class KeptParts:
    """Writes the rows of a batch, which come as one part, and its side outputs to the checkpoint.

    `sides` are the side outputs that somebody takes. Of another one only the receipt is kept, which
    says how many rows it had.
    """

    keep: Keep
    batch: BatchId
    name: str
    sides: frozenset[str]

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        label = ".".join(filter(None, (part.side, _file_name(part.stream))))
        name = f"{self.name}.{label}.arrow" if label else f"{self.name}.arrow"
        if part.side and part.side not in self.sides:
            return Receipt(name, rows.num_rows, more=asdict(part))
        data = to_bytes(rows)
        self.keep.write(self.batch, name, data)
        return Receipt(name, rows.num_rows, len(data), zlib.crc32(data), asdict(part))


class DroppedSides:
    """Logs once for each side output that nobody takes its rows; `remedy` says how to have them."""

    def __init__(self, log: logging.Logger, remedy: str) -> None:
        self._log, self._remedy = log, remedy
        self._told: set[str] = set()

    def tell(self, where: str, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """Called with all receipts of a batch: those without bytes are of rows that are dropped."""
        for side in (part_of(receipt).side for receipt in receipts if not receipt.bytes):
            if side not in self._told:
                self._told.add(side)
                told = "%s: rows that are %s, from batch %d on, are counted and dropped. To have %s"
                self._log.warning(told, where, side, batch, f"them, {self._remedy.format(side)}.")


def _file_name(stream: str) -> str:
    """A stream's name as part of a file name: its bytes in hex where it is not plain ASCII."""
    return stream if stream.isalnum() and stream.isascii() else stream.encode().hex()
