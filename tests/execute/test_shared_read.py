"""A stream that meets itself is read once by a task that has both of its splits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.driver.scene import loop_of, memory, plan_of, rows_of
from tidegate.execute import task
from tidegate.sink.memory import MemorySink
from tidegate.source import memory as memory_source

SQL = """SELECT l.v AS one, r.v AS other
FROM s [RANGE 3 SECONDS] AS l JOIN s [RANGE 3 SECONDS] AS r ON l.k = r.k"""
ROWS = [(t / 2, f"k{t % 3}", t) for t in range(24)]


def reads_of(folder: Path, patch: pytest.MonkeyPatch) -> tuple[Any, int]:
    """The rows of the join, and how often its source was read by tasks."""
    reads: list[Any] = []
    plain = memory_source.MemoryReader.read

    def read(reader: Any, columns: Any) -> Any:
        reads.append(columns)
        return plain(reader, columns)

    patch.setattr(memory_source.MemoryReader, "read", read)
    sink = MemorySink()
    loop = loop_of(plan_of(SQL), [memory(*ROWS, end=True)], folder, sink, batch_rows=8)
    while loop.step() is not None:
        pass
    loop.close()
    patch.undo()
    return rows_of(sink), len(reads)


def test_rows_that_two_splits_want_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, once = reads_of(tmp_path / "once", monkeypatch)
    monkeypatch.setattr(task, "_MOST_ROWS", 0)
    each, twice = reads_of(tmp_path / "each", monkeypatch)
    assert len(rows) > 50
    assert rows == each
    assert once > 2
    assert twice == 2 * once
