"""Keeps the parts of a batch in the checkpoint, for sinks whose place cannot stage."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import pyarrow as pa

from tidegate.batch import BatchId, from_bytes, to_bytes
from tidegate.errors import LostOutputError
from tidegate.sink.protocol import Keep
from tidegate.sink.receipt import Part, Receipt


def read_kept(keep: Keep, batch: BatchId, receipt: Receipt, where: str, until: str) -> pa.Table:
    """The part of a receipt; one that is gone or damaged is a LostOutputError."""
    data = keep.read(batch, receipt.name)
    if data is None or zlib.crc32(data) != receipt.checksum:
        raise LostOutputError(
            where,
            f"batch {batch} must be in the checkpoint until {until}",
            f"no {receipt.name} of it" if data is None else f"a damaged {receipt.name}",
            "Restore the checkpoint from a copy, or start from an empty one.",
        )
    return from_bytes(data)


@dataclass(frozen=True)
class KeptParts:
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
