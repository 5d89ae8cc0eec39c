"""Records what each batch published, in a small file of its own that never changes.

`_ledger/batch=NNNNNNNN` lists the names, rows, bytes and checksums of the parts of a batch, with
those of its side outputs. Manifests know only the newest batches, so `tidegate state DIR --verify`
checks the older ones by these files. A sink writes the ledger before it publishes the batch, and
does not sync it: the text carries a checksum, so a ledger that a loss of power damaged is not
mistaken for another. A restart writes the ledger of the newest batch again.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from tidegate.batch import BatchId
from tidegate.sink.receipt import NO_FILE, Receipt

LEDGER = "_ledger"

_NAME = re.compile(r"batch=(\d{8,})")
_LISTED = 100
"""How many problems are listed one by one."""


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


@dataclass(frozen=True)
class Past:
    """What a check of the batches that an output has published found.

    `problems` are parts that differ from what was published, or that are missing while others of
    their folder are there. `warnings` are folders that are gone as a whole, because somebody may
    have archived them, and batches without a readable ledger.
    """

    batches: int
    parts: int
    bytes: int
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def batch_folder(batch: int) -> str:
    """The name of the folder of a batch, and of its ledger. Names sort as the batches do."""
    return f"batch={batch:08d}"


def batch_numbers(names: Sequence[str]) -> list[int]:
    """The batches whose folders or ledgers are among some names, ascending."""
    return sorted(int(found[1]) for name in names if (found := _NAME.fullmatch(name)))


def ledger_name(batch: int) -> str:
    """The name of a ledger below the folder of an output."""
    return f"{LEDGER}/{batch_folder(batch)}"


def ledger_text(batch: int, receipts: Sequence[Receipt]) -> bytes:
    """The ledger of a batch: the same bytes whoever publishes it, and however often."""
    # What only one writer knows (its try, its place aside) stays out, so that a restart which
    # publishes the batch again finds the ledger that is there already equal to its own.
    plain = [replace(receipt, more={}, digest=None).to_dict() for receipt in receipts]
    body = json.dumps({"batch": batch, "parts": plain}, sort_keys=True)
    return f"{zlib.crc32(body.encode()):08x} {body}\n".encode()


def ledger_receipts(data: bytes) -> list[Receipt] | None:
    """The parts that a ledger lists; None where the ledger is damaged."""
    stated, _, body = data.rstrip(b"\n").partition(b" ")
    if stated != f"{zlib.crc32(body):08x}".encode() or not data.endswith(b"}\n"):
        return None
    return [Receipt.from_dict(fields) for fields in json.loads(body)["parts"]]


def past_of(sink: PublishedSink, before: int) -> Past:
    """Check all batches before one by their ledgers; reads everything they have published."""
    batches, parts, size = 0, 0, 0
    problems: list[str] = []
    gone: dict[str, list[str]] = {}
    unreadable: list[int] = []
    known = _batches(sink, LEDGER, before)
    for batch in known:
        try:
            receipts = ledger_receipts(sink.ledger(BatchId(batch)))
            if receipts is None:
                unreadable.append(batch)
                continue
            wrong, away = _looked_at(list(sink.seen(BatchId(batch), receipts)))
        except OSError as error:
            problems.append(f"batch {batch} cannot be read: {error}")
            continue
        batches, parts = batches + 1, parts + len(receipts)
        size += sum(receipt.bytes or 0 for receipt in receipts)
        problems += wrong
        for folder in away:
            top, _, name = folder.rpartition("/")
            gone.setdefault(top, []).append(name)
    warnings = [
        f"{top}: {len(names)} of its folders, from {names[0]} to {names[-1]}, are not there or are "
        "empty: archived or deleted"
        for top, names in gone.items()
    ]
    without = sorted({*_batches(sink, "", before)} - {*known})
    for what, found in (("no ledger", without), ("a ledger that cannot be read", unreadable)):
        if found:
            warnings.append(
                f"{len(found)} batches, from {found[0]} to {found[-1]}, have {what}, and were not "
                "checked"
            )
    more = len(problems) - _LISTED
    listed = [*problems[:_LISTED], *([f"and {more} parts more"] if more > 0 else [])]
    return Past(batches, parts, size, tuple(listed), tuple(warnings))


def _batches(sink: PublishedSink, folder: str, before: int) -> list[int]:
    return [batch for batch in batch_numbers(sink.batch_names(folder)) if batch < before]


def _looked_at(seen: Sequence[SeenPart]) -> tuple[list[str], list[str]]:
    """The problems, part by part, and the folders that are missing as a whole."""
    there = {part.folder for part in seen if part.wrong != NO_FILE}
    wrong = [f"{p.path}: {p.wrong}" for p in seen if p.wrong is not None and p.folder in there]
    return wrong, list(dict.fromkeys(p.folder for p in seen if p.folder not in there))
