"""Results as files: `batch=NNNNNNNN` folders, each written aside and moved into place whole."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from tidegate.batch import BatchId
from tidegate.errors import OptionError, SinkError
from tidegate.sink.address import Address
from tidegate.sink.folder.batch_ledger import (
    LEDGER,
    SeenPart,
    batch_folder,
    ledger_name,
    ledger_text,
    with_columns,
)
from tidegate.sink.folder.form import PARAMETERS, REFUSE, WRITERS, Form
from tidegate.sink.folder.part import SIDES, FilePartWriter, side_folder, unwritten
from tidegate.sink.folder.refusal import (
    CHANGED,
    other_format,
    part_lost,
    results_beyond,
    results_missing,
    results_there,
    too_early,
)
from tidegate.sink.folder.staging import ATTEMPT, Staging, damage, first_damage, is_there, names_in
from tidegate.sink.folder.text_rows import TEXTS
from tidegate.sink.folder.verify import VerifiedParts
from tidegate.sink.protocol import Opening
from tidegate.sink.receipt import Receipt
from tidegate.sink.registry import folder_of
from tidegate.storage import disk

_log = logging.getLogger(__name__)


class FileSink:
    """A folder of results: its files, read in the order of their names, are the output sequence.

    Side outputs go to `_late` and `_rejected`, beside the batches or in the folder `sides`. They
    have batch folders of their own, which exist only where there is something in them.
    """

    parallel = True
    side_outputs = True
    formats = tuple(WRITERS)

    def __init__(
        self,
        path: str | os.PathLike[str],
        format: str = "parquet",
        sides: str | os.PathLike[str] | None = None,
        nonfinite: str = REFUSE,
    ) -> None:
        self.form = Form(format, nonfinite)
        self.path = Path(folder_of(os.fspath(path), "sink"))
        self.format = format
        self.sides = self.path if sides is None else Path(sides)
        self._staging = Staging(self.path, 0)
        self._columns: pa.Schema | None = None
        """What the ledgers have to tell of the columns: nothing where the files do."""
        self._used = False
        """Whether this run has written or published anything here, or an earlier one has."""
        self._attempt = ""
        self._new = False
        """Whether the query had committed nothing at `open` and has begun nothing since."""
        self._begun: BatchId | None = None
        """The batch that this run writes now, or wrote last."""
        self._waiting: BatchId | None = None
        """The batch that is committed, or about to be, and not yet published."""

    def __repr__(self) -> str:
        return f"FileSink({str(self.path)!r}, format={self.format!r})"

    @staticmethod
    def at(address: Address, output: str | None) -> FileSink:
        """The sink of a folder; an output with a name has a folder of its name in it."""
        address.check_parameters(*PARAMETERS)
        form = Form.at(address)
        place, sides = (
            (address.place, None)
            if output is None
            else (Path(address.place) / output, address.place)
        )
        return FileSink(place, form.format, sides, form.nonfinite)

    @property
    def uri(self) -> str:
        """The place that a manifest records, by which `verify` finds the parts of a batch."""
        sides = "" if self.sides == self.path else f"?sides={quote(os.path.abspath(self.sides))}"
        return f"file://{quote(os.path.abspath(self.path))}{sides}"

    def verify(self, batch: BatchId, receipts: Sequence[Receipt]) -> VerifiedParts:
        """Compare the parts of a committed batch with their receipts; changes nothing."""
        place = self.path / batch_folder(batch)
        there = disk.exists(place)
        parts = self._published(batch, receipts) if there else self._staged(batch, receipts)
        wrong = [(path, damage(path, receipt, contents=True)) for path, receipt in parts]
        return VerifiedParts(
            published=there or not receipts,
            parts=len(parts),
            bytes=sum(receipt.bytes or 0 for _, receipt in parts),
            problems=tuple(f"{path}: {what}" for path, what in wrong if what is not None),
        )

    def batch_names(self, folder: str) -> list[str]:
        return names_in(self.path / folder)

    def ledger(self, batch: BatchId) -> bytes:
        with disk.current().open(self.path / ledger_name(batch)) as file:
            return file.read()

    def beside(self) -> FileSink:
        """The folder of the side outputs."""
        return FileSink(self.sides)

    def part(self, name: str) -> pa.NativeFile:
        """A published file by its name below the folder, for reading."""
        return pa.OSFile(str(self.path / name))

    def seen(self, batch: BatchId, receipts: Sequence[Receipt]) -> Iterator[SeenPart]:
        for path, receipt in self._published(batch, receipts):
            yield SeenPart(str(path), str(path.parent), damage(path, receipt, contents=True))

    def side_names(self, folder: str) -> list[str] | None:
        return names_in(self.sides / folder) if self.sides == self.path else None

    def shown(self, name: str) -> str:
        return str(self.path / name)

    def open(self, opening: Opening) -> None:
        self._used, self._begun, self._new = False, None, opening.newest is None
        self._waiting = opening.newest if opening.newest in opening.results else None
        self._staging = Staging(self.path, opening.owner)
        self._columns = opening.schema if self.format in TEXTS else None
        try:
            self._check_place(opening)
        except OSError as error:
            raise OptionError(
                str(self.path),
                "the output folder must be readable",
                error.strerror or str(error),
                "Give access or see to the disk, or choose another --out.",
            ) from error
        self._used = bool(opening.results)  # earlier runs of this checkpoint have written here

    def begin(self, batch: BatchId) -> FilePartWriter:
        self._used = True
        place = self.path / batch_folder(batch)
        try:
            if self._new and is_there(self.path / LEDGER):  # left by results that were deleted
                disk.remove_tree(self.path / LEDGER)
            self._new = False
            self._attempt = self._staging.begin(batch_folder(batch), keep=self._waiting)
        except OSError as error:
            raise unwritten(str(place), error) from error
        self._begun = batch
        folder, name = (
            os.path.abspath(self._staging.tasks),
            f"{batch_folder(batch)}.{self._attempt}",
        )
        return FilePartWriter(folder, name, self.form, str(place))

    def prepare(self, batch: BatchId, receipts: Sequence[Receipt]) -> list[Receipt]:
        try:
            sealed = self._staging.seal(batch_folder(batch), self._attempt, receipts)
        except OSError as error:
            raise unwritten(str(self.path / batch_folder(batch)), error) from error
        self._waiting = batch
        return with_columns(sealed, self._columns)

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """Move the side outputs into place, then the batch itself; a crash leaves the rest aside.

        The last move is the one that counts: a batch that is in place is never changed. Parts that
        another process has written are read and compared with their checksums before it.
        """
        self._used = True
        place = self.path / batch_folder(batch)
        aside = self._staging.attempt(batch_folder(batch), _attempt(receipts))
        try:
            if is_there(place):
                self._check_published(batch, receipts)
                self._write_ledger(batch, receipts)
                self._settle(batch)
            else:
                self._check_staged(batch, receipts)
                if batch != self._begun:
                    self._staging.drop_unnamed(aside, receipts)
                for side in SIDES:
                    if is_there(aside / side):
                        self._move_side(batch, receipts, side)
                # The batch comes last: whoever finds it finds its sides and its ledger as well,
                # and a restart that does not find it does all of these steps again.
                self._write_ledger(batch, receipts)
                disk.current().replace(aside, place)
                disk.current().sync_folder(self.path)
                if batch != self._begun:
                    self._settle(batch)
        except OSError as error:
            raise SinkError(
                str(place),
                "a committed batch must be moved into place",
                error.strerror or str(error),
                f"It is kept in {aside}: fix the folder, then run again.",
            ) from error
        self._waiting = None
        if batch != self._begun:
            self._staging.sweep(None, ended=False)

    def close(self) -> None:
        if self._used:  # a run that was refused owns nothing here
            self._staging.sweep(self._waiting, ended=True)

    def _check_place(self, opening: Opening) -> None:
        """Refuse a folder in which this run cannot begin or continue to write."""
        if disk.is_file(self.path):
            raise OptionError(
                str(self.path), "the output must be a folder", "a file", "Choose another --out."
            )
        if opening.newest is None or not opening.results:
            self._check_unused()
        else:
            results = [batch_folder(batch) for batch in opening.results]
            self._check_continued(batch_folder(opening.newest), results)
        whole = self.path.absolute()
        nearest = next((p for p in (whole, *whole.parents) if disk.exists(p)), whole)
        if not disk.is_folder(nearest) or not disk.current().writable(nearest):
            raise OptionError(
                str(self.path),
                "the output folder must be writable",
                f"a file at {nearest}" if disk.is_file(nearest) else "no permission",
                "Choose another --out or change its permissions.",
            )

    def _check_unused(self) -> None:
        """Refuse a folder with results: readers would take those of another run for this one's."""
        there = _found(self.path, "batch=")
        there += [p for side in SIDES for p in _found(self.sides / side, "batch=")]
        if there:
            raise results_there(str(self.path), str(min(there).relative_to(self.sides)))

    def _check_continued(self, newest: str, written: Sequence[str]) -> None:
        """Refuse a folder that lacks the results of this checkpoint, or has some beyond the newest.

        Where only the newest batch is missing the folder is accepted: that batch will run again.
        """
        last = written[0]
        beyond = [p.name for p in _found(self.path, "batch=") if p.name > newest]
        if beyond:
            raise results_beyond(str(self.path), last, beyond[0])
        places = [self.path / last, *self._staging.attempts(last)]
        other = [p for place in places for p in _found(place, "part-")]
        if other and other[0].suffix != f".{self.format}":
            raise other_format(str(self.path), other[0].suffix[1:], self.format)
        before = [self.path / folder for folder in written[1:]]
        if not any(is_there(place) for place in (*places, *before)):
            more = f"; if the results were moved away on purpose, make an empty folder {last}"
            raise results_missing(str(self.path), last, more)

    def _check_staged(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """Raise LostOutputError unless each part is aside as written, or moved already (sides)."""
        found = first_damage(self._staged(batch, receipts), contents=batch != self._begun)
        if found is not None:
            place = self.path / batch_folder(batch)
            more = f"; or to go on without the batch, make an empty folder {place}"
            raise part_lost(str(found[0]), found[1], more)

    def _check_published(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """Log where the batch in place differs from what was committed; it stays as it is.

        Where the staged parts are still there too, the folder in place is of another run: refused.
        """
        place = self.path / batch_folder(batch)
        changed = first_damage(
            [(place / r.name, r) for r in receipts if side_folder(r) is None], contents=False
        )
        if changed is None:
            return
        staged = self._staged(batch, receipts)
        if first_damage(staged, contents=batch != self._begun) is None:
            what, advice = "a folder of other results", "Move it away, and run again."
            raise too_early(str(place), what, advice)
        _log.warning(CHANGED, *changed)

    def _write_ledger(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """Write the ledger of the batch, unless the same one is there."""
        path, text = self.path / ledger_name(batch), ledger_text(batch, receipts)
        if is_there(path):
            if self.ledger(batch) == text:
                return
            disk.current().unlink(path)
        disk.make_folders(path.parent)
        with disk.current().create(path) as file:
            file.write(text)

    def _published(self, batch: BatchId, receipts: Sequence[Receipt]) -> list[tuple[Path, Receipt]]:
        """Where the parts of a batch are when it is published."""
        place = self.path / batch_folder(batch)
        sides = {side: self.sides / side / place.name for side in SIDES}
        found = [(sides.get(side_folder(r) or "", place), r) for r in receipts]
        return [(folder / os.path.basename(r.name), r) for folder, r in found]

    def _staged(self, batch: BatchId, receipts: Sequence[Receipt]) -> list[tuple[Path, Receipt]]:
        """Where the parts of a batch are until it is published: sides may be moved already."""
        aside, found = self._staging.attempt(batch_folder(batch), _attempt(receipts)), []
        for receipt in receipts:
            path, side = aside / receipt.name, side_folder(receipt)
            if side is not None and not is_there(aside / side):
                path = self.sides / side / batch_folder(batch) / os.path.basename(receipt.name)
            found.append((path, receipt))
        return found

    def _settle(self, batch: BatchId) -> None:
        """Make durable what an earlier try has moved into place, perhaps without syncing it.

        A run that was killed in between leaves a batch that can be seen, and would be lost with the
        power, although nothing is aside any more from which it could come again.
        """
        for folder in (self.path, *(self.sides / side for side in SIDES)):
            if is_there(folder / batch_folder(batch)):
                disk.sync_above(folder / batch_folder(batch))

    def _move_side(self, batch: BatchId, receipts: Sequence[Receipt], side: str) -> None:
        """Move a side output into its place, durably.

        Where one is there already, an earlier try moved it before a crash. It stays if it is the
        same. If it is damaged it is put aside, and removed once the new one is in place.
        """
        aside = self._staging.attempt(batch_folder(batch), _attempt(receipts))
        target, old = (
            self.sides / side / batch_folder(batch),
            aside.with_name(f"{aside.name}.{side}"),
        )
        if is_there(target):
            own = [r for r in receipts if side_folder(r) == side]
            there = [(target / os.path.basename(r.name), r) for r in own]
            if first_damage(there, contents=True) is None:
                disk.remove_tree(aside / side)
                return
            disk.current().replace(target, old)
        for folder in disk.make_folders(target.parent):
            disk.current().sync_folder(os.path.dirname(folder))
        disk.current().replace(aside / side, target)
        disk.current().sync_folder(target.parent)
        if is_there(old):
            disk.remove_tree(old)


def _found(folder: Path, prefix: str) -> list[Path]:
    """What begins with a prefix in a folder, sorted; nothing where there is no such folder."""
    return [folder / name for name in names_in(folder) if name.startswith(prefix)]


def _attempt(receipts: Sequence[Receipt]) -> str:
    """The try that sealed these receipts; "" where another kind of sink wrote them."""
    return next((str(r.more[ATTEMPT]) for r in receipts if ATTEMPT in r.more), "")
