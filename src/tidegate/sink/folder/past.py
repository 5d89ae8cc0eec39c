"""Checks all that an output has published: what is damaged, what is missing, and what was added.

The ledgers say which files each batch has, and the manifests of the newest batches say it too. A
batch without rows has neither a folder nor a ledger. Whether a ledger was deleted together with its
batch therefore shows in the number of rows that the checkpoint has committed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.batch import BatchId
from tidegate.sink.folder.batch_ledger import (
    LEDGER,
    PublishedSink,
    batch_folder,
    batch_numbers,
    ledger_name,
    ledger_receipts,
)
from tidegate.sink.folder.part import LATE, SIDES, side_folder
from tidegate.sink.folder.staging import STAGING
from tidegate.sink.receipt import NO_FILE, Receipt

_LISTED = 100
"""How many problems are listed one by one."""

_GAPS = 10
"""How many batches without a ledger a message lists."""

_SUFFIXES = (".parquet", ".csv", ".json")
_HIDDEN = ("_", ".")
_UNKNOWN = "no batch has published it"


@dataclass(frozen=True)
class Committed:
    """What a checkpoint knows of an output; without one only the ledgers are known.

    - `newest`: the newest batch to be checked; None is the newest one that has a ledger.
    - `receipts`: the parts of the batches of which a manifest is at hand.
    - `rows`: how many rows the batches up to the newest have; None where that is not known.
    - `newest_now`: asks for the newest batch once the output has been listed, because a run may
      have published more since `newest` was read.
    """

    newest: int | None = None
    receipts: Mapping[int, Sequence[Receipt]] = field(default_factory=dict)
    rows: int | None = None
    newest_now: Callable[[], int] | None = None


@dataclass(frozen=True)
class Past:
    """What a check of the batches that an output has published found.

    `problems` names each part that differs from what was published, that is missing, or that no
    batch has published, and each ledger that is missing or cannot be read. `batches`, `parts` and
    `bytes` count what was checked.
    """

    batches: int
    parts: int
    bytes: int
    problems: tuple[str, ...]


def past_of(sink: PublishedSink, committed: Committed) -> Past:
    """Check the batches up to one; reads all files that they have published.

    Holds the names of all batches, and lists each folder once: grows with the batches.
    """
    check = _Check(sink, committed)
    problems = list(check.ledgers())
    whole = not problems
    problems += check.damaged()
    if whole and committed.rows is not None:
        problems += check.lost_rows(committed.rows)
    problems += check.added()
    more = len(problems) - _LISTED
    shown = [*problems[:_LISTED], *([f"and {more} more"] if more > 0 else [])]
    receipts = [receipt for of in check.known.values() for receipt in of]
    size = sum(receipt.bytes or 0 for receipt in receipts)
    return Past(len(check.known), len(receipts), size, tuple(shown))


class _Check:
    """One check of an output; `known` has the parts of each batch that was published."""

    def __init__(self, sink: PublishedSink, committed: Committed) -> None:
        self._sink = sink
        self._committed = committed
        # A sink writes the ledger of a batch before its folder: so what is listed in this order
        # beside a run has its ledger.
        self._top = sink.batch_names("")
        self._sides = {side: sink.side_names(side) or () for side in SIDES}
        self._ledgers = batch_numbers(sink.batch_names(LEDGER))
        newest = committed.newest
        self._newest: int = self._newest_published() if newest is None else newest
        receipts = committed.receipts.items()
        self.known = {b: list(of) for b, of in receipts if of and b <= self._newest}

    def ledgers(self) -> Iterator[str]:
        """Read the ledgers; those that cannot be read, or are missing."""
        sink, folders = self._sink, {*batch_numbers(self._top)}
        needed = sorted({b for b in folders if b <= self._newest} | {*self.known})
        for batch in (batch for batch in self._ledgers if batch <= self._newest):
            receipts = _ledger(sink, batch)
            if isinstance(receipts, str):
                yield f"{sink.shown(ledger_name(batch))}: {receipts}"
                self.known.setdefault(batch, [])
            else:
                self.known[batch] = receipts
        if self._committed.newest is None:
            return
        lost = [batch for batch in needed if batch not in self._ledgers]
        if len(lost) > 1 and not self._ledgers:
            yield f"{sink.shown(LEDGER)}: no ledgers, so that {len(lost)} batches cannot be checked"
            lost = []
        for batch in lost:
            what = "it was deleted"
            if batch not in self.known:
                what += f", or {batch_folder(batch)} was added"
            yield f"{sink.shown(ledger_name(batch))}: {NO_FILE}: {what}"
        for batch in needed:
            self.known.setdefault(batch, [])

    def damaged(self) -> Iterator[str]:
        """The parts that are not as published; a folder that is gone is one problem."""
        for batch, receipts in sorted(self.known.items()):
            try:
                yield from _damaged(self._sink, batch, receipts)
            except OSError as error:
                yield f"{self._sink.shown(batch_folder(batch))}: cannot be read: {error}"

    def lost_rows(self, rows: int) -> Iterator[str]:
        """Whether batches were deleted with their ledgers: the committed rows tell."""
        known, place = self.known, self._sink.shown("")
        found = sum(r.rows for of in known.values() for r in of if side_folder(r) is None)
        if found < rows:
            gaps = [b for b in range(self._newest + 1) if b not in known]
            names = ", ".join(batch_folder(b) for b in gaps[:_GAPS]) + ", ..." * (len(gaps) > _GAPS)
            yield (
                f"{place}: {rows - found:,} of the {rows:,} committed rows are in no batch: some "
                f"were deleted with their ledgers, of {names}"
            )
        elif found > rows:
            yield f"{place}: the ledgers list {found:,} rows, where {rows:,} were committed"

    def added(self) -> Iterator[str]:
        """Files and folders that no batch has published."""
        limit = self._limit()
        for name in self._top:
            yield from self._strange(name, "", limit)
        for side, names in self._sides.items():
            for name in names:
                yield from self._strange(name, side, limit)
        if self._sink.side_names(LATE) is None:
            parent = self._sink.beside()
            yield from (
                f"{parent.shown(n)}: {_UNKNOWN}" for n in parent.batch_names("") if is_result(n)
            )

    def _newest_published(self) -> int:
        """The newest ledger, or the one before where its batch still waits to be published."""
        ledgers = self._ledgers
        if ledgers and batch_folder(ledgers[-1]) not in self._top:
            waiting = f"{batch_folder(ledgers[-1])}."
            if any(name.startswith(waiting) for name in self._sink.batch_names(STAGING)):
                ledgers = ledgers[:-1]
        return ledgers[-1] if ledgers else -1

    def _limit(self) -> int:
        """The newest batch that a run may have published by now."""
        there = batch_numbers([*self._top, *(n for of in self._sides.values() for n in of)])
        newest_now = self._committed.newest_now
        if newest_now is None or not there or there[-1] <= self._newest:
            return self._newest
        return max(self._newest, newest_now())

    def _strange(self, name: str, side: str, limit: int) -> Iterator[str]:
        """What is strange about something at the top of an output, or of a side output."""
        path = f"{side}/{name}" if side else name
        number = next(iter(batch_numbers([name])), None)
        if number is None or name != batch_folder(number):
            if is_stray(name, self._inside(path, side)):
                yield f"{self._sink.shown(path)}: {_UNKNOWN}"
        elif number in self.known:
            known = self.known[number]
            own = {os.path.basename(r.name) for r in known if (side_folder(r) or "") == side}
            more = [n for n in self._inside(path, side) if n not in own] if known else ()
            yield from (f"{self._sink.shown(f'{path}/{name}')}: {_UNKNOWN}" for name in more)
        elif self._newest < number <= limit or (side and self._committed.newest is None):
            return  # published since, or about to be
        elif self._inside(path, side):  # an empty one is of a person who goes on without the batch
            yield f"{self._sink.shown(path)}: {_UNKNOWN}"

    def _inside(self, path: str, side: str) -> Sequence[str]:
        return (self._sink.side_names(path) if side else self._sink.batch_names(path)) or ()


def is_stray(name: str, inside: Sequence[str]) -> bool:
    """Whether something beside the batches of an output would be read as results.

    `inside` are the names in it, none of a file. Folders of other kinds are somebody's own.
    """
    if is_result(name):
        return True
    if name.startswith(_HIDDEN):
        return False
    return not inside or any(inner.endswith(_SUFFIXES) for inner in inside)


def is_result(name: str) -> bool:
    """Whether something of this name would be read as results."""
    return name.endswith(_SUFFIXES) or name.startswith("batch=")


def _ledger(sink: PublishedSink, batch: int) -> list[Receipt] | str:
    """The parts that a ledger lists, or what is wrong with it."""
    try:
        receipts = ledger_receipts(sink.ledger(BatchId(batch)), batch)
    except OSError as error:
        return f"cannot be read: {error}"
    return receipts if receipts is not None else "damaged: it is not as it was written"


def _damaged(sink: PublishedSink, batch: int, receipts: Sequence[Receipt]) -> Iterator[str]:
    """The parts of a batch that are not as published; a folder that is gone is one problem."""
    seen = list(sink.seen(BatchId(batch), receipts))
    there = {part.folder for part in seen if part.wrong != NO_FILE}
    for part in seen:
        if part.wrong is not None and part.folder in there:
            yield f"{part.path}: {part.wrong}"
    for folder in dict.fromkeys(part.folder for part in seen if part.folder not in there):
        gone = [part.path for part in seen if part.folder == folder]
        yield f"{gone[0]}: {NO_FILE}" + f", nor {len(gone) - 1} more of it" * (len(gone) > 1)
