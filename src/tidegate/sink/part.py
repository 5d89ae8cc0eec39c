"""One file of a batch's results, written by the sink or by a task for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from tidegate.sink.csv import write_csv
from tidegate.sink.json import write_json


@dataclass(frozen=True)
class PartWriter:
    """Where the parts of one batch go; picklable, so that tasks can write them side by side."""

    folder: str
    format: str

    def write(self, number: int, table: pa.Table) -> None:
        """Write a part; read in the order of their numbers they are the batch's rows."""
        write_part(Path(self.folder), f"part-{number:05d}", self.format, table)


def write_part(folder: Path, name: str, format: str, table: pa.Table) -> None:
    """Write a table as a file that is on disk when this returns; a second try replaces it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.{format}"
    aside = folder / f".{name}.{os.getpid()}"
    WRITERS[format](table, aside)
    with aside.open("rb") as written:
        os.fsync(written.fileno())
    os.replace(aside, path)


def _write_parquet(table: pa.Table, path: Path) -> None:
    # A dictionary of floats costs half of the time of writing and saves nothing.
    repeating = [f.name for f in table.schema if not pa.types.is_floating(f.type)]
    pyarrow.parquet.write_table(table, path, compression="zstd", use_dictionary=repeating)


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "parquet": _write_parquet,
    "csv": write_csv,
    "json": write_json,
}
