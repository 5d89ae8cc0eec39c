"""Results as files: `batch=NNNNNNNN` folders, each written aside and moved into place whole."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tidegate import disk
from tidegate.batch import BatchId
from tidegate.errors import OptionError, SinkError, near
from tidegate.sink.address import Address
from tidegate.sink.part import SIDES, WRITERS, FilePartWriter, unwritten
from tidegate.sink.protocol import Opening
from tidegate.sink.receipt import Receipt

_STAGING = "_staging"


class FileSink:
    """A folder of results; read in the order of their names its files are the output sequence.

    `_late` and `_rejected` beside the batches, or in the folder `sides`, hold the side outputs, in
    batch folders of their own that exist only where there is something in them.
    """

    parallel = True
    side_outputs = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        format: str = "parquet",
        sides: str | os.PathLike[str] | None = None,
    ) -> None:
        check_format(format)
        self.path = Path(path)
        self.format = format
        self.sides = Path(path if sides is None else sides)
        self._begun: BatchId | None = None

    @staticmethod
    def at(address: Address, output: str | None) -> FileSink:
        """The sink of a folder; an output with a name has a folder of its name in it."""
        address.check_parameters("format")
        format = address.parameters.get("format", "parquet")
        check_format(format, address.where, f"format={format}")
        if output is None:
            return FileSink(address.place, format)
        return FileSink(Path(address.place) / output, format, sides=address.place)

    def open(self, opening: Opening) -> None:
        self._begun = None
        if disk.is_file(self.path):
            raise OptionError(
                str(self.path), "the output must be a folder", "a file", "Choose another --out."
            )
        if opening.newest is None:
            self._check_unused()
        else:
            self._check_continued(_folder(opening.newest))
        whole = self.path.absolute()
        nearest = next(p for p in (whole, *whole.parents) if disk.exists(p))
        if not disk.is_folder(nearest) or not disk.current().writable(nearest):
            raise OptionError(
                str(self.path),
                "the output folder must be writable",
                "no permission" if disk.is_folder(nearest) else f"a file at {nearest}",
                "Choose another --out or change its permissions.",
            )

    def begin(self, batch: BatchId) -> FilePartWriter:
        staging = self.path / _STAGING
        aside = staging / _folder(batch)
        try:
            self._discard(staging)
        except OSError as error:
            raise unwritten(str(aside), error) from error
        self._begun = batch
        return FilePartWriter(str(aside.absolute()), self.format, str(aside))

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """Move the side outputs into place, then the batch itself: a crash leaves the rest aside.

        The last move is the one that counts. So a batch that is in place, and was not begun since,
        stays as it is; what is aside then was left by a task that outlived its driver.
        """
        aside, place = self.path / _STAGING / _folder(batch), self.path / _folder(batch)
        try:
            if disk.exists(place) and batch != self._begun:
                self._discard(self.path / _STAGING)
                return
            self._check_staged(batch, receipts)
            self._discard_unnamed(aside, receipts)
            for side in SIDES:
                if disk.exists(aside / side):
                    self._move(aside / side, self.sides / side / _folder(batch))
            self._move(aside, place)
            self._begun = None
            disk.current().sync_folder(self.path)
            self._drop_empty_staging()
        except OSError as error:
            raise SinkError(
                str(place),
                "a committed batch must be moved into place",
                error.strerror or str(error),
                f"It is kept in {aside}: mend the folder, then run again.",
            ) from error

    def close(self) -> None:
        self._drop_empty_staging()

    def _check_unused(self) -> None:
        """A new run begins in a folder without results, so that none of another are read as its."""
        there = _found(self.path, "batch=")
        there += [p for side in SIDES for p in _found(self.sides / side, "batch=")]
        if there:
            raise OptionError(
                str(self.path),
                "a new run needs an output folder without results",
                f"batches of an earlier run ({min(there).relative_to(self.sides)})",
                "Choose another --out, delete the folder, or continue with its --checkpoint.",
            )

    def _check_continued(self, newest: str) -> None:
        """A run continues in the folder that has its results: the newest, and none beyond it."""
        beyond = [p.name for p in _found(self.path, "batch=") if p.name > newest]
        if beyond:
            raise OptionError(
                str(self.path),
                f"must have the results of this checkpoint, up to {newest}",
                f"{beyond[0]} of another run",
                "Continue with the --out of the earlier run, or move those batches away.",
            )
        places = (self.path / newest, self.path / _STAGING / newest)
        other = [p for place in places for p in _found(place, "part-")]
        if other and other[0].suffix != f".{self.format}":
            raise OptionError(
                "--format",
                f"must be that of the results in {self.path}, {other[0].suffix[1:]}",
                self.format,
                f"Use --format {other[0].suffix[1:]}, or another --out and --checkpoint.",
            )
        if not any(disk.exists(place) for place in places):
            raise OptionError(
                str(self.path),
                f"must have the results of this checkpoint, up to {newest}",
                f"no {newest}",
                "Continue with the --out of the earlier run, or start from an empty checkpoint; "
                f"if the results were moved away on purpose, make an empty folder {newest}.",
            )

    def _check_staged(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """Every part is aside, or is of a side output and was moved before a crash."""
        for receipt in receipts:
            side, _, name = receipt.name.rpartition("/")
            aside = self.path / _STAGING / _folder(batch) / receipt.name
            if not disk.exists(aside) and not (
                side in SIDES and disk.exists(self.sides / side / _folder(batch) / name)
            ):
                raise SinkError(
                    str(aside),
                    "a part of a committed batch must be there until it is published",
                    "no such file",
                    "Put it back from a copy, and run again; or to go on without the batch, make "
                    f"an empty folder {self.path / _folder(batch)}.",
                )

    def _discard_unnamed(self, aside: Path, receipts: Sequence[Receipt]) -> None:
        """Remove what tasks left that were tried twice, or are of an earlier try of the batch."""
        named = {os.path.join(aside, receipt.name) for receipt in receipts}
        for folder, _, files in disk.current().walk(aside):
            for path in (os.path.join(folder, file) for file in files):
                if path not in named:
                    disk.unlink_if_there(path)

    def _move(self, source: Path, target: Path) -> None:
        disk.make_folders(target.parent)
        self._discard(target)
        disk.current().replace(source, target)

    def _drop_empty_staging(self) -> None:
        staging = self.path / _STAGING
        if disk.exists(staging) and not disk.current().names(staging):
            disk.current().remove_folder(staging)

    @staticmethod
    def _discard(path: Path) -> None:
        if disk.exists(path):
            disk.remove_tree(path)


def check_format(format: str, where: str = "--format", said: str | None = None) -> None:
    """Refuse a format that results cannot be written in; `said` is how the user asked for it."""
    if format not in WRITERS:
        got = said or format
        raise OptionError(where, "must be a known format", got, near(format, WRITERS))


def _found(folder: Path, prefix: str) -> list[Path]:
    """What begins so in a folder, sorted; nothing where there is no such folder."""
    names = disk.current().names(folder) if disk.is_folder(folder) else []
    return [folder / name for name in sorted(names) if name.startswith(prefix)]


def _folder(batch: int) -> str:
    return f"batch={batch:08d}"
