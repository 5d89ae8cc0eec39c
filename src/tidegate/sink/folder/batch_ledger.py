"""Records what each batch published, in a small file of its own that never changes.

`_ledger/batch=NNNNNNNN` lists the names, rows, bytes and checksums of the parts of a batch, with
those of its side outputs. Of CSV and JSON it also has the types of the columns, without which their
files cannot be read back. Manifests know only the newest batches, so `tidegate verify` and
`tidegate state DIR --verify` check the older ones by these files (`past`). A sink writes the ledger
before it publishes the batch, and does not sync it: the text carries a checksum, so a ledger that a
loss of power damaged is not mistaken for another. A restart writes that of the newest batch again.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from tidegate.batch import BatchId
from tidegate.sink.receipt import Receipt

LEDGER = "_ledger"

COLUMNS = "columns"
"""The key of the types of the columns: in a ledger, and until it is written in `Receipt.more`."""

_NAME = re.compile(r"batch=(\d{8,})")


@dataclass(frozen=True)
class SeenPart:
    """A published part that was read again: its path, its folder, and what is wrong with it."""

    path: str
    folder: str
    wrong: str | None


@runtime_checkable
class PublishedSink(Protocol):
    """A sink whose published batches can be read again by its URI. No call changes anything."""

    @property
    def uri(self) -> str:
        """The place that a manifest records, by which `verify` finds the parts of a batch."""

    def batch_names(self, folder: str) -> Sequence[str]:
        """The names of what is in a folder of the output, sorted; `""` is the output itself."""

    def ledger(self, batch: BatchId) -> bytes:
        """The bytes of the ledger of a batch."""

    def seen(self, batch: BatchId, receipts: Sequence[Receipt]) -> Iterator[SeenPart]:
        """Read the parts of a batch where they were published."""

    def side_names(self, folder: str) -> Sequence[str] | None:
        """The names in a folder of side outputs; None where other outputs share them."""

    def beside(self) -> PublishedSink:
        """The folder of the side outputs, which may be that of all outputs of the query."""

    def shown(self, name: str) -> str:
        """The path of a file or folder of the output, for messages."""


def batch_folder(batch: int) -> str:
    """The name of the folder of a batch, and of its ledger. Names sort as the batches do."""
    return f"batch={batch:08d}"


def batch_numbers(names: Sequence[str]) -> list[int]:
    """The batches whose folders or ledgers are among some names, ascending."""
    return sorted(int(found[1]) for name in names if (found := _NAME.fullmatch(name)))


def ledger_name(batch: int) -> str:
    """The name of a ledger below the folder of an output."""
    return f"{LEDGER}/{batch_folder(batch)}"


def with_columns(receipts: Sequence[Receipt], columns: pa.Schema | None) -> list[Receipt]:
    """The receipts of a batch, of which the first tells the ledger the types of the columns.

    So they are committed with the batch: the next run, which may write its ledger, may have others.
    """
    if columns is None or not receipts:
        return list(receipts)
    plain = columns.remove_metadata().serialize().to_pybytes()
    first, *others = receipts
    more = {**first.more, COLUMNS: base64.b64encode(plain).decode()}
    return [replace(first, more=more), *others]


def ledger_text(batch: int, receipts: Sequence[Receipt]) -> bytes:
    """The ledger of a batch: the same bytes whoever publishes it, and however often."""
    # What only one writer knows (its try, its place aside) stays out, so that a restart which
    # publishes the batch again finds the ledger that is there already equal to its own.
    plain = [replace(receipt, more={}, digest=None).to_dict() for receipt in receipts]
    body: dict[str, Any] = {"batch": batch, "parts": plain}
    if receipts and COLUMNS in receipts[0].more:
        body[COLUMNS] = receipts[0].more[COLUMNS]
    text = json.dumps(body, sort_keys=True).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def ledger_receipts(data: bytes, batch: int | None = None) -> list[Receipt] | None:
    """The parts that a ledger lists; None where it is damaged, or of another batch."""
    said = _said(data)
    if said is None or (batch is not None and said["batch"] != batch):
        return None
    return [Receipt.from_dict(fields) for fields in said["parts"]]


def ledger_columns(data: bytes) -> pa.Schema | None:
    """The columns of the rows of a batch; None where its ledger has none, or is damaged."""
    said = _said(data)
    if said is None or COLUMNS not in said:
        return None
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(said[COLUMNS])))


def _said(data: bytes) -> dict[str, Any] | None:
    """What a ledger says; None where it is damaged."""
    stated, _, body = data.rstrip(b"\n").partition(b" ")
    if stated != f"{zlib.crc32(body):08x}".encode() or not data.endswith(b"}\n"):
        return None
    said: dict[str, Any] = json.loads(body)
    return said
