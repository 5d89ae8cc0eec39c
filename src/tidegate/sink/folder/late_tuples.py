"""Reads from the files of `_late` which tuples came too late to be among the rows of a query."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from tidegate.connector import Int64s
from tidegate.sink.folder.batch_ledger import batch_numbers
from tidegate.sink.folder.folder_reader import damaged_part
from tidegate.sink.folder.part import LATE
from tidegate.sink.folder.text_rows import TEXTS, cells_of
from tidegate.sink.folder.verify import sink_at

_PLACE = ["_source", "_seq"]
"""The columns that say where a tuple stands."""

LatePositions = Mapping[tuple[str, str], Int64s]
"""Positions in ascending order, by the stream and the source."""


def late_positions(uri: str) -> LatePositions:
    """The late tuples of a query, by the place of its first output; none where it kept none.

    Reads all files of late tuples, and holds their positions. A SourceError where one is damaged.
    """
    sides = sink_at(uri).beside()
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    folders = [name for name in sides.batch_names(LATE) if batch_numbers([name])]
    for folder in (f"{LATE}/{name}" for name in folders):
        for name in sides.batch_names(folder):
            stream, _, format = name.rpartition(".")
            part = f"{folder}/{name}"
            try:
                with sides.part(part) as file:
                    sources, positions = _places(file, format)
                for source, position in zip(sources, positions, strict=True):
                    found[unquote(stream), source].append(int(position))
            except (OSError, pa.ArrowException, ValueError, KeyError) as error:
                raise damaged_part(sides.shown(part), error) from error
    return {key: np.unique(np.array(of, np.int64)) for key, of in found.items()}


def _places(file: pa.NativeFile, format: str) -> tuple[Sequence[str], Sequence[int | str]]:
    """The sources and the positions of the tuples in a file."""
    if format in TEXTS:
        names, cells = cells_of(file.read(), format)
        found = pa.table([pa.array(cells[names.index(n)], pa.string()) for n in _PLACE], _PLACE)
    else:
        found = pyarrow.parquet.read_table(file, columns=_PLACE)
    sources, positions = (found.column(name).to_pylist() for name in _PLACE)
    return sources, positions
