"""Results as files: `batch=NNNNNNNN` folders, each written aside and moved into place whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from tidegate.batch import BatchId
from tidegate.errors import OptionError, SinkError, near
from tidegate.sink.json import write_json
from tidegate.sink.protocol import Output
from tidegate.state.store import Store

_STAGING = "_staging"


class FileSink:
    """A folder of results; read in the order of their names its files are the output sequence.

    `_late` and `_rejected` beside the batches hold the side outputs, in batch folders of their
    own that exist only where there is something in them.
    """

    def __init__(self, path: str | os.PathLike[str], format: str = "parquet") -> None:
        if format not in _WRITERS:
            raise OptionError("--format", "must be a known format", format, near(format, _WRITERS))
        self.path = Path(path)
        self.format = format

    def open(self, schema: pa.Schema, store: Store, fresh: bool) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise OptionError(
                str(self.path), "the output must be a folder", "a file", "Choose another --out."
            )
        if fresh and self.path.exists() and any(self.path.glob("batch=*")):
            raise OptionError(
                str(self.path),
                "a new run needs an output folder without results",
                "batches of an earlier run",
                "Choose another --out, delete the folder, or continue with its --checkpoint.",
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._discard(self.path / _STAGING) if fresh else None
        except OSError as error:
            raise OptionError(
                str(self.path),
                "the output folder must be writable",
                error.strerror or str(error),
                "Choose another --out or change its permissions.",
            ) from None
        if not os.access(self.path, os.W_OK):
            raise OptionError(
                str(self.path),
                "the output folder must be writable",
                "no permission",
                "Choose another --out or change its permissions.",
            )

    def stage(self, batch: BatchId, output: Output) -> None:
        aside = self.path / _STAGING / _folder(batch)
        try:
            self._discard(aside)
            self._write(aside, "part-00000", output.rows)
            for stream, table in output.late.items():
                self._write(aside / "_late", stream, table)
            if output.rejected is not None:
                self._write(aside / "_rejected", "rejected", output.rejected)
        except OSError as error:
            raise SinkError(
                str(aside),
                "the batch must be written before it is committed",
                error.strerror or str(error),
                "Nothing of it was committed: make room or mend the folder, then run again.",
            ) from error

    def publish(self, batch: BatchId) -> None:
        aside = self.path / _STAGING / _folder(batch)
        if not aside.exists():
            self._drop_empty_staging()
            return
        for side in ("_late", "_rejected"):
            target = self.path / side / _folder(batch)
            self._discard(target)
            if (aside / side).exists():
                target.parent.mkdir(exist_ok=True)
                os.replace(aside / side, target)
        target = self.path / _folder(batch)
        self._discard(target)
        os.replace(aside, target)
        _sync_folder(self.path)
        self._drop_empty_staging()

    def close(self) -> None:
        self._drop_empty_staging()

    def _write(self, folder: Path, name: str, table: pa.Table) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.{self.format}"
        _WRITERS[self.format](table, path)
        with path.open("rb") as written:
            os.fsync(written.fileno())

    def _drop_empty_staging(self) -> None:
        staging = self.path / _STAGING
        if staging.exists() and not any(staging.iterdir()):
            staging.rmdir()

    @staticmethod
    def _discard(path: Path) -> None:
        if path.exists():
            shutil.rmtree(path)


def _folder(batch: int) -> str:
    return f"batch={batch:08d}"


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_parquet(table: pa.Table, path: Path) -> None:
    pyarrow.parquet.write_table(table, path, compression="zstd")


def _write_csv(table: pa.Table, path: Path) -> None:
    pyarrow.csv.write_csv(table, path)


_WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "parquet": _write_parquet,
    "csv": _write_csv,
    "json": write_json,
}
