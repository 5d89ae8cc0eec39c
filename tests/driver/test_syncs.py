"""How often a batch waits for the disk: the floor of its latency, so every sync is counted."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import IO

import pytest

from tests.driver.scene import COUNTS, PASSED, Row, loop_of, memory, plan_of
from tidegate.sink.folder.files import FileSink
from tidegate.storage import disk


class Counting(disk.SystemDisk):
    """The disk of the system, which notes what was synced."""

    def __init__(self, top: Path) -> None:
        self.synced: list[str] = []
        self._top = top

    def sync(self, file: IO[bytes]) -> None:
        self._note("file", Path(file.name).parent)
        super().sync(file)

    def sync_file(self, path: disk.Path) -> None:
        self._note("file", Path(path).parent)
        super().sync_file(path)

    def sync_folder(self, path: disk.Path) -> None:
        self._note("folder", Path(path))
        super().sync_folder(path)

    def link(self, source: disk.Path, target: disk.Path) -> None:
        self._note("name in", Path(target).parent)
        super().link(source, target)

    def _note(self, what: str, path: Path) -> None:
        """Keep a path, with what differs from batch to batch left out; not those above the test."""
        if path.is_relative_to(self._top):
            parts = path.relative_to(self._top).parts
            self.synced.append(f"{what} {'/'.join(re.split('[=-]', p)[0] for p in parts)}")


ROWS: list[Row] = [(float(i), "ab"[i % 2], i) for i in range(60)]
LATE: list[Row] = [(1.0, "late", 1), (None, "timeless", 2)]
STATE = {"file c/segment": 2, "folder c/segment": 1}
COMMIT = {"file c/manifest": 1, "name in c/manifest": 1, "folder c/manifest": 1}
OUTPUT = {
    "file out/_staging/batch": 1,
    "folder out/_staging/batch": 1,
    "folder out/_staging": 1,
    "folder out": 1,
}
SIDES = {
    "file out/_staging/batch/_late": 1,
    "file out/_staging/batch/_rejected": 1,
    "folder out/_staging/batch/_late": 1,
    "folder out/_staging/batch/_rejected": 1,
    "folder out/_late": 1,
    "folder out/_rejected": 1,
}


@pytest.mark.parametrize(
    ("sql", "rows", "expected"),
    [
        (PASSED, ROWS, [COMMIT, OUTPUT]),
        (COUNTS, ROWS, [STATE, COMMIT, OUTPUT]),
        (PASSED, [*ROWS[:4], *LATE, *ROWS[4:32], *LATE, *ROWS[32:]], [COMMIT, OUTPUT, SIDES]),
    ],
    ids=["stateless", "aggregate", "side outputs"],
)
def test_the_syncs_of_a_batch(
    sql: str, rows: list[Row], expected: list[dict[str, int]], tmp_path: Path
) -> None:
    """Of the fourth, when all folders are there; each closes a window."""
    with disk.using(Counting(tmp_path)) as counting:
        assert isinstance(counting, Counting)
        sink = FileSink(tmp_path / "out", "json")
        source = memory(*rows, end=True)
        loop = loop_of(plan_of(sql), [source], tmp_path / "c", sink, batch_rows=11)
        for _ in range(4):
            counting.synced.clear()
            loop.step()
        synced = Counter(counting.synced)
        loop.close()
    assert synced == sum((Counter(e) for e in expected), Counter())


def test_the_order_of_the_syncs_of_a_batch(tmp_path: Path) -> None:
    """All that the manifest counts on, in any order; then its name; then what is published."""
    with disk.using(Counting(tmp_path)) as counting:
        assert isinstance(counting, Counting)
        sink = FileSink(tmp_path / "deep" / "out", "json")
        loop = loop_of(plan_of(PASSED), [memory(*ROWS)], tmp_path / "c", sink, batch_rows=7)
        counting.synced.clear()
        loop.step()
        loop.close()
    named = counting.synced.index("name in c/manifest")
    assert sorted(set(counting.synced[:named])) == [
        "file c/manifest",
        "file deep/out/_staging/batch",
        "folder ",
        "folder deep",
        "folder deep/out",
        "folder deep/out/_staging",
        "folder deep/out/_staging/batch",
    ]
    assert counting.synced[named + 1 :] == ["folder c/manifest", "folder deep/out"]
