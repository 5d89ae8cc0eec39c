"""State that instances keep in memory between batches: used, and within the budget of memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.driver.scene import loop_of, memory, plan_of, rows_of
from tidegate.memory import MEMORY, Allowance
from tidegate.operate.aggregate import state as pane_state
from tidegate.operate.instance_cache import _VALUES
from tidegate.sink.memory import MemorySink
from tidegate.state.segment.segment import read_segment

SLIDING = "SELECT k, SUM(v) AS v FROM s [RANGE 12 SECONDS SLIDE 4 SECONDS] GROUP BY k"
ROWS = [(t / 10, f"k{t % 7}", t) for t in range(400)]


@pytest.fixture(autouse=True)
def emptied() -> Iterator[None]:
    """A process that keeps nothing yet, and that the next test finds as it was."""
    MEMORY.resize(0)
    yield
    MEMORY.resize(None)


def run(place: Path, memory_bytes: int | None, patch: pytest.MonkeyPatch) -> tuple[Any, int, int]:
    """The rows of the query, how many segments instances read, and the most that was kept."""
    reads, held = [], [0]
    patch.setattr(
        pane_state, "read_segment", lambda *a, **k: reads.append(a) or read_segment(*a, **k)
    )
    sink, source = MemorySink(), memory(*ROWS, end=True)
    allowed = Allowance(cache_bytes=memory_bytes)
    loop = loop_of(plan_of(SLIDING), [source], place, sink, memory=allowed, batch_rows=9)
    batches = 0
    while loop.step() is not None:
        batches += 1
        held.append(_VALUES.bytes)
        assert MEMORY.bytes <= MEMORY.limit_bytes
    loop.close()
    assert batches > 40
    return rows_of(sink), len(reads), max(held)


def test_open_panes_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, reads, held = run(tmp_path / "kept", None, monkeypatch)
    assert len(rows) > 60
    assert reads == 0
    assert held > 500


def test_open_panes_are_kept_within_a_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit is read, with the same rows."""
    expected, _, most = run(tmp_path / "kept", None, monkeypatch)
    nothing, reads, held = run(tmp_path / "nothing", 0, monkeypatch)
    assert nothing == expected
    assert reads > 20
    assert held == 0
    some, fewer, held = run(tmp_path / "some", 4 * most // 3, monkeypatch)
    assert some == expected
    assert 0 < fewer < reads
    assert 0 < held < most
