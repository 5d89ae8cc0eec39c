"""Compare a source, read in any ranges, with rows that a twin has read one at a time."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from tests.oracle.text import BAD
from tidegate.connector import Source

_numbers = count()


def fresh(folder: Path, name: str) -> Path:
    """A path below a folder shared by many examples that no other example has used."""
    return folder / f"{next(_numbers)}-{name}"


def all_rows(source: Source) -> int:
    known = source.extend(1)
    while (more := source.extend(known + 1)) > known:
        known = more
    return known


def read_range(source: Source, start: int, stop: int) -> list[dict[str, Any] | str]:
    """One entry per position, as a task with a pickled reader sees them."""
    reader = pickle.loads(pickle.dumps(source.reader(start, stop)))
    assert (reader.start, reader.stop) == (start, stop)
    rows = reader.read(source.schema.names)
    assert rows.table.schema == source.schema
    found: dict[int, dict[str, Any] | str] = {r.seq: BAD for r in rows.rejects}
    assert len(found) == len(rows.rejects)
    found.update(zip(rows.seq.tolist(), rows.table.to_pylist(), strict=True))
    assert sorted(found) == list(range(start, stop))
    assert all(a < b for a, b in zip(rows.seq, rows.seq[1:]))
    return [found[i] for i in range(start, stop)]


def check_times(
    source: Source, time: str, expected: list[dict[str, Any] | str], start: int, stop: int
) -> None:
    """Times agree with the readable rows; unreadable ones may have one or not."""
    numbers, valid = source.times(start, stop)
    assert len(numbers) == len(valid) == stop - start
    for row, number, is_valid in zip(expected[start:stop], numbers.tolist(), valid.tolist()):
        if isinstance(row, str):
            assert is_valid or number == 0
        else:
            assert (number if is_valid else None) == micros(row[time])


def micros(value: date | None) -> int | None:
    if value is None:
        return None
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
