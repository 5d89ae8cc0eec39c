"""Writes one file in pieces, and moves it into place once it is whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

import pyarrow as pa
import pyarrow.parquet

from tidegate.errors import OptionError, SinkError, near
from tidegate.sink.csv import csv_text
from tidegate.sink.json import write_json
from tidegate.storage import disk
from tidegate.storage.whole_file import whole_file


class Writer(Protocol):
    """Takes the rows of a file, piece by piece."""

    def write(self, table: pa.Table) -> None: ...

    def close(self) -> None: ...


@contextmanager
def table_file(path: Path, format: str, schema: pa.Schema) -> Iterator[Writer]:
    """A writer of a file that appears, or replaces one, when the block ends without an error.

    Needs memory for one piece. Raises OptionError where the path cannot be written, before writing
    anything, and SinkError where writing fails; neither leaves anything behind.
    """
    if format not in _WRITERS:
        raise OptionError("--format", "must be a known format", format, near(format, _WRITERS))
    _check_target(path)
    try:
        with whole_file(path) as out:
            writer = _WRITERS[format](out, schema)
            yield writer
            writer.close()
    except (OSError, pa.ArrowException) as error:
        raise SinkError(
            str(path),
            "the file must be written to its end",
            getattr(error, "strerror", None) or str(error),
            "Nothing was left behind: make room or fix the folder, then run again.",
        ) from error


def _check_target(path: Path) -> None:
    """Refuse a path that cannot become a file."""
    folder = path.absolute().parent
    trouble = None
    if disk.is_folder(path):
        trouble = "a folder"
    elif not disk.is_folder(folder):
        trouble = f"no folder {folder}"
    elif not disk.current().writable(folder):
        trouble = f"no permission to write in {folder}"
    if trouble is not None:
        raise OptionError(
            str(path), "must be a file that can be written", trouble, "Choose another --out."
        )


class _Lines:
    """Lines of text: every piece is complete by itself."""

    def __init__(self, out: IO[bytes], write: Callable[[pa.Table, IO[bytes]], object]) -> None:
        self._out, self._write = out, write

    def write(self, table: pa.Table) -> None:
        self._write(table, self._out)

    def close(self) -> None:
        """Does nothing."""


def _parquet(out: IO[bytes], schema: pa.Schema) -> Writer:
    """A row group per piece."""
    writer: Writer = pyarrow.parquet.ParquetWriter(out, schema, compression="zstd")
    return writer


def _csv(out: IO[bytes], schema: pa.Schema) -> Writer:
    out.write(csv_text(schema.empty_table(), header=True).encode())
    return _Lines(out, lambda table, out: out.write(csv_text(table, header=False).encode()))


def _json(out: IO[bytes], schema: pa.Schema) -> Writer:
    return _Lines(out, write_json)


_WRITERS: dict[str, Callable[[IO[bytes], pa.Schema], Writer]] = {
    "parquet": _parquet,
    "csv": _csv,
    "json": _json,
}
