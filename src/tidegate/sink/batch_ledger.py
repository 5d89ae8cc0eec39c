"""What each batch has published, in a small file beside the batches that no later one changes.

`_ledger/batch=NNNNNNNN` has the names, rows, bytes and checksums of the parts of a batch, those of
side outputs too. The manifest knows the newest batches only; so older ones are checked by these
(`tidegate state DIR --verify`). A ledger is written before its batch is published and costs no
sync: its text ends with a checksum, and one that a loss of power has taken cannot be read as
another. A restart writes that of the newest batch again.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from tidegate.batch import BatchId
from tidegate.sink.receipt import Receipt

LEDGER = "_ledger"
NO_FILE = "no such file"
"""What is wrong with a part that is not there."""

_NAME = re.compile(r"batch=(\d{8,})")
_LISTED = 100
"""So many problems are told one by one."""


@dataclass(frozen=True)
class SeenPart:
    """A published part looked at again: where, in which folder, and what is wrong with it."""

    path: str
    folder: str
    wrong: str | None


@runtime_checkable
class PublishedSink(Protocol):
    """A sink whose published batches can be looked at again by its URI; nothing is changed."""

    @property
    def uri(self) -> str:
        """Where the parts of a batch can be found by who only has its manifest; see `verify`."""

    def batch_names(self, folder: str) -> Sequence[str]:
        """The names of what is in a folder of the output, sorted; `""` is the output itself."""

    def ledger(self, batch: BatchId) -> bytes:
        """The bytes of the ledger of a batch."""

    def seen(self, batch: BatchId, receipts: Sequence[Receipt]) -> Iterator[SeenPart]:
        """Read the parts of a batch where they were published."""


@dataclass(frozen=True)
class Past:
    """The batches that an output has published.

    `problems` are parts that differ from what was published, or that are not there beside others of
    their folder. `warnings` tell of folders that are gone as a whole, because somebody may have
    archived them, and of batches that nothing is known of.
    """

    batches: int
    parts: int
    bytes: int
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def ledger_name(batch: int) -> str:
    """The name of a ledger below the folder of an output."""
    return f"{LEDGER}/batch={batch:08d}"


def ledger_text(batch: int, receipts: Sequence[Receipt]) -> bytes:
    """The ledger of a batch: the same bytes whoever publishes it, and however often."""
    plain = [replace(receipt, more={}, digest=None).to_dict() for receipt in receipts]
    body = json.dumps({"batch": batch, "parts": plain}, sort_keys=True)
    return f"{zlib.crc32(body.encode()):08x} {body}\n".encode()


def ledger_receipts(data: bytes) -> list[Receipt] | None:
    """The parts that a ledger has; None where it is not as it was written."""
    stated, _, body = data.rstrip(b"\n").partition(b" ")
    if stated != f"{zlib.crc32(body):08x}".encode() or not data.endswith(b"}\n"):
        return None
    return [Receipt.from_dict(fields) for fields in json.loads(body)["parts"]]


def past_of(sink: PublishedSink, before: int) -> Past:
    """Check all batches before one by their ledgers: reads all that was published."""
    batches, parts, size = 0, 0, 0
    problems: list[str] = []
    gone: dict[str, list[str]] = {}
    unreadable: list[int] = []
    known = _batches(sink.batch_names(LEDGER), before)
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
    without = sorted({*_batches(sink.batch_names(""), before)} - {*known})
    for what, found in (("no ledger", without), ("a ledger that cannot be read", unreadable)):
        if found:
            warnings.append(
                f"{len(found)} batches, from {found[0]} to {found[-1]}, have {what}, and were not "
                "checked"
            )
    more = len(problems) - _LISTED
    listed = [*problems[:_LISTED], *([f"and {more} parts more"] if more > 0 else [])]
    return Past(batches, parts, size, tuple(listed), tuple(warnings))


def _batches(names: Sequence[str], before: int) -> list[int]:
    found = (_NAME.fullmatch(name) for name in names)
    return sorted(int(name[1]) for name in found if name is not None and int(name[1]) < before)


def _looked_at(seen: Sequence[SeenPart]) -> tuple[list[str], list[str]]:
    """What is wrong, part by part, and the folders of which nothing is there."""
    there = {part.folder for part in seen if part.wrong != NO_FILE}
    wrong = [f"{p.path}: {p.wrong}" for p in seen if p.wrong is not None and p.folder in there]
    return wrong, list(dict.fromkeys(p.folder for p in seen if p.folder not in there))
