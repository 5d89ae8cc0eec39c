"""Results as files: `batch=NNNNNNNN` folders, each written aside and moved into place whole."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pyarrow as pa

from tidegate.batch import BatchId
from tidegate.errors import OptionError, SinkError, near
from tidegate.sink.part import WRITERS, PartWriter, write_part
from tidegate.sink.protocol import Output
from tidegate.state.store import Store

_STAGING = "_staging"
_SIDES = ("_late", "_rejected")


class FileSink:
    """A folder of results; read in the order of their names its files are the output sequence.

    `_late` and `_rejected` beside the batches, or in the folder `sides`, hold the side outputs, in
    batch folders of their own that exist only where there is something in them.
    """

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

    def open(self, schema: pa.Schema, store: Store, fresh: bool, output: str | None = None) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise OptionError(
                str(self.path), "the output must be a folder", "a file", "Choose another --out."
            )
        if fresh:
            self._check_unused()
        else:
            self._check_continued(store)
        whole = self.path.absolute()
        nearest = next(p for p in (whole, *whole.parents) if p.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise OptionError(
                str(self.path),
                "the output folder must be writable",
                "no permission" if nearest.is_dir() else f"a file at {nearest}",
                "Choose another --out or change its permissions.",
            )

    def parts(self, batch: BatchId) -> PartWriter:
        """Begin a batch whose rows tasks will write; `stage` then adds the side outputs."""
        aside = self.path / _STAGING
        try:
            self._discard(aside)
        except OSError as error:
            raise _unwritten(aside, error) from error
        return PartWriter(str((aside / _folder(batch)).absolute()), self.format)

    def stage(self, batch: BatchId, output: Output) -> None:
        aside = self.path / _STAGING / _folder(batch)
        try:
            if output.written is None:
                self._discard(self.path / _STAGING)
                write_part(aside, "part-00000", self.format, output.rows)
            for stream, table in output.late.items():
                write_part(aside / "_late", _file_name(stream), self.format, table)
            if output.rejected is not None:
                write_part(aside / "_rejected", "rejected", self.format, output.rejected)
        except (OSError, pa.ArrowException) as error:
            raise _unwritten(aside, error) from error

    def publish(self, batch: BatchId) -> None:
        """Move the side outputs into place, then the batch itself: a crash leaves the rest aside.

        What is not aside any more was moved before, and stays as it is.
        """
        aside = self.path / _STAGING / _folder(batch)
        try:
            if aside.exists():
                for side in _SIDES:
                    if (aside / side).exists():
                        self._move(aside / side, self.sides / side / _folder(batch))
                self._move(aside, self.path / _folder(batch))
                _sync_folder(self.path)
            self._drop_empty_staging()
        except OSError as error:
            raise SinkError(
                str(self.path / _folder(batch)),
                "a committed batch must be moved into place",
                error.strerror or str(error),
                f"It is kept in {aside}: mend the folder, then run again.",
            ) from error

    def close(self) -> None:
        self._drop_empty_staging()

    def _check_unused(self) -> None:
        """A new run begins in a folder without results, so that none of another are read as its."""
        there = [*self.path.glob("batch=*")]
        there += [found for side in _SIDES for found in (self.sides / side).glob("batch=*")]
        if there:
            raise OptionError(
                str(self.path),
                "a new run needs an output folder without results",
                f"batches of an earlier run ({min(there).relative_to(self.sides)})",
                "Choose another --out, delete the folder, or continue with its --checkpoint.",
            )

    def _check_continued(self, store: Store) -> None:
        """A run continues in the folder that has its results: the newest, and none beyond it."""
        latest = store.latest()
        assert latest is not None
        newest = _folder(latest.batch)
        beyond = sorted(p.name for p in self.path.glob("batch=*") if p.name > newest)
        if beyond:
            raise OptionError(
                str(self.path),
                f"must have the results of this checkpoint, up to {newest}",
                f"{beyond[0]} of another run",
                "Continue with the --out of the earlier run, or move those batches away.",
            )
        places = (self.path / newest, self.path / _STAGING / newest)
        other = [p for place in places for p in sorted(place.glob("part-*"))]
        if other and other[0].suffix != f".{self.format}":
            raise OptionError(
                "--format",
                f"must be that of the results in {self.path}, {other[0].suffix[1:]}",
                self.format,
                f"Use --format {other[0].suffix[1:]}, or another --out and --checkpoint.",
            )
        if not any(place.exists() for place in places):
            raise OptionError(
                str(self.path),
                f"must have the results of this checkpoint, up to {newest}",
                f"no {newest}",
                "Continue with the --out of the earlier run, or start from an empty checkpoint; "
                f"if the results were moved away on purpose, make an empty folder {newest}.",
            )

    def _move(self, source: Path, target: Path) -> None:
        target.parent.mkdir(exist_ok=True)
        self._discard(target)
        os.replace(source, target)

    def _drop_empty_staging(self) -> None:
        staging = self.path / _STAGING
        if staging.exists() and not any(staging.iterdir()):
            staging.rmdir()

    @staticmethod
    def _discard(path: Path) -> None:
        if path.exists():
            shutil.rmtree(path)


def check_format(format: str) -> None:
    """Refuse a format that results cannot be written in."""
    if format not in WRITERS:
        raise OptionError("--format", "must be a known format", format, near(format, WRITERS))


def _unwritten(aside: Path, error: OSError | pa.ArrowException) -> SinkError:
    return SinkError(
        str(aside),
        "the batch must be written before it is committed",
        getattr(error, "strerror", None) or str(error),
        "Nothing of it was committed: make room or mend the folder, then run again.",
    )


def _folder(batch: int) -> str:
    return f"batch={batch:08d}"


def _file_name(stream: str) -> str:
    """A stream's name where it may stand in a path; plain names stay as they are."""
    return re.sub(r"[/\\\0%]|^[._]", lambda m: f"%{ord(m[0]):02X}", stream)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
