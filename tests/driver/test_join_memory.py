"""Stored tuples of a join in memory: used, within the budget, and never in the way of the state."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.driver.scene import compacted
from tests.driver.test_join_state import BANDS, COUNTED, EITHER, EQUAL, loop_of
from tests.property.course import IN_MEMORY
from tests.property.test_kept import watched
from tidegate.elastic.request import Request, Scale
from tidegate.memory import MEMORY
from tidegate.operate import segment_cache
from tidegate.operate.join import instance as join
from tidegate.operate.join.chain import chain, memory, stored_segment
from tidegate.state.segment.segment import Segment, read_segment
from tidegate.state.store import Store

QUERIES = {
    "equal": (EQUAL, "auto"),
    "band": (BANDS.replace("- 10", "- 900").replace("+ 10", "+ 900"), "auto"),
    "union": (EITHER, "auto"),
    "counted": (COUNTED, "auto"),
    "scan": (EQUAL, "scan"),
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A place for checkpoints that takes no time to sync."""
    with tempfile.TemporaryDirectory(prefix="tidegate-", dir=IN_MEMORY) as name:
        yield Path(name)


@pytest.fixture(autouse=True)
def emptied() -> Iterator[None]:
    """A process that keeps nothing yet, and that the next test finds as it was."""
    MEMORY.resize(0)
    MEMORY.resize(None)
    yield
    MEMORY.resize(None)


def run(
    name: str,
    folder: Path,
    patch: pytest.MonkeyPatch,
    *,
    forget: float = 0,
    restart: int = -1,
    scaled: Sequence[int] = (),
) -> tuple[Any, list[int], list[Any]]:
    """All that a run gives, how many segments each batch reads, and what it has in memory.

    Every third batch has another number of instances, where it is `scaled`.
    """
    sql, method = QUERIES[name]
    reads: list[int] = []

    def read(*arguments: Any, **named: Any) -> Any:
        reads[-1] += 1
        return read_segment(*arguments, **named)

    for module in (stored_segment, segment_cache):
        patch.setattr(module, "read_segment", read)
    given = {"batch_rows": 12, "rows": 110, "method": method, "rate": 8, "domain": 9}
    parts = []
    with watched(forget) as (written, found):
        loop, sink = loop_of(sql, folder, **given)
        while not loop.manifest.finished:
            if loop.manifest.batch == restart:
                loop.close()
                parts.append(sink.table())
                loop, sink = loop_of(sql, folder, **given)
            if scaled and loop.manifest.batch % 3 == 2:
                loop.controls.ask(Request(Scale(scaled[loop.manifest.batch // 3 % len(scaled)])))
            reads.append(0)
            loop.step()
            assert MEMORY.bytes <= MEMORY.limit_bytes
            compacted(loop)
        counters = dict(loop.manifest.counters)
        loop.close()
    rows = [r for t in (*parts, sink.table()) for r in t.to_pylist()]
    assert len(rows) > 100
    assert len(reads) > 16
    return (rows, counters, written), reads, found


@pytest.mark.parametrize("name", ["equal", "counted"])
def test_no_segment_is_read_again(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But by the first batch after a start."""
    made, reads, _ = run(name, folder / "one", monkeypatch)
    assert not any(reads)
    again, reads, _ = run(name, folder / "two", monkeypatch, restart=9)
    assert again[0] == made[0]
    assert [i for i, count in enumerate(reads) if count] == [10]


@pytest.mark.parametrize("name", [name for name in QUERIES if name != "equal"])
def test_what_is_not_in_memory_is_read(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same rows, counts and segments, whatever of the tuples is in memory."""
    monkeypatch.setattr(chain, "FEW_ROWS", 6)
    monkeypatch.setattr(stored_segment, "FEW_ROWS", 6)
    made, _, _ = run(name, folder / "all", monkeypatch)
    monkeypatch.setattr(join, "_most_bytes", lambda: 1_800)
    some, reads, found = run(name, folder / "some", monkeypatch, forget=0.1)
    assert some == made
    assert sum(map(bool, reads)) > 2
    assert max(c.nbytes for left in found for c in left.chains) > 500
    assert all(c.nbytes <= 1_800 for left in found for c in left.chains)


@pytest.mark.parametrize(
    ("name", "most_rows"),
    [("equal", 10_000), ("band", 9), ("union", 10_000), ("counted", 9), ("scan", 9)],
)
def test_a_switch_finds_what_instances_keep_in_memory(
    name: str, most_rows: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same rows, counts and segments as where all is read; of kept buckets little is read."""
    monkeypatch.setattr(chain, "FEW_ROWS", 6)
    monkeypatch.setattr(stored_segment, "FEW_ROWS", 6)
    for module, what in ((stored_segment, "_MOST_ADOPTED_ROWS"), (memory, "MOST_MOVED_ROWS")):
        monkeypatch.setattr(module, what, most_rows)
    monkeypatch.setattr(stored_segment, "MOST_MOVED_ROWS", most_rows)
    scaled = (3, 2, 4, 1, 3)
    read, reads, _ = run(name, folder / "read", monkeypatch, forget=1, scaled=scaled)
    kept, fewer, found = run(name, folder / "kept", monkeypatch, scaled=scaled)
    assert kept == read
    assert found
    assert sum(fewer) < sum(reads) / 2


def test_who_only_loses_buckets_reads_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From two instances to three only the third reads, and in the batch of the switch alone."""
    loop, _ = loop_of(BANDS, folder, batch_rows=12, rows=110, rate=8, domain=9)
    for _ in range(12):
        loop.step()
    read: list[str] = []

    def noted(store: Store, segment: Segment, *arguments: Any, **named: Any) -> Any:
        read.append(segment.name)
        return read_segment(store, segment, *arguments, **named)

    for module in (stored_segment, segment_cache):
        monkeypatch.setattr(module, "read_segment", noted)
    loop.controls.ask(Request(Scale(3)))
    loop.step()
    assert read
    assert len(read) == len({*read})
    read.clear()
    loop.step()
    assert not read
    loop.close()


def test_memory_is_within_its_budget(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _, _ = run("equal", folder / "all", monkeypatch)
    monkeypatch.setattr("tidegate.memory.default_bytes", lambda: 20_000)
    few, reads, found = run("equal", folder / "few", monkeypatch)
    assert few == made
    assert found
    assert any(reads)
