"""Work that is broken off between its pieces."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.driver.scene import loop_of, memory, plan_of
from tidegate import cancellation
from tidegate.cancellation import LOOK_ROWS, between_pieces, breakable
from tidegate.errors import BrokenOffError
from tidegate.execute.local import LocalRunner
from tidegate.memory_limit import LIMIT
from tidegate.operate.join import pair_step, search

ROWS = [(float(i), "abc"[i % 3], i) for i in range(400)]
SCANNED = """SELECT l.v AS x FROM s [RANGE 1 HOUR] AS l JOIN s [RANGE 1 HOUR] AS r
    ON SIN(l.v * r.v) > 2"""


def test_only_the_work_of_the_thread_is_broken_off() -> None:
    aborted = threading.Event()
    with breakable(aborted):
        between_pieces()
        aborted.set()
        other = threading.Thread(target=between_pieces)
        other.start()
        other.join()
        with pytest.raises(
            BrokenOffError, match=r"^the batch: must not be cancelled; got an abort"
        ):
            between_pieces()
    between_pieces()


def test_memory_is_looked_at_once_for_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    monkeypatch.setattr(LIMIT, "check", lambda: looks.append(1))
    monkeypatch.setattr(cancellation, "_work", threading.local())
    for _ in range(8):
        between_pieces(LOOK_ROWS // 4)
    assert len(looks) == 2


def test_a_scan_ends_at_the_piece_in_which_its_run_is_aborted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of hundreds of pieces; the next start goes on from the batch before."""
    monkeypatch.setattr(search, "_FEW_PAIRS", 0)
    monkeypatch.setattr(pair_step, "_HITS", 256)
    pieces = 0

    def counted(rows: int) -> None:
        nonlocal pieces
        pieces += 1
        if pieces == 5:
            assert loop.abort()
        between_pieces(rows)

    monkeypatch.setattr(pair_step, "between_pieces", counted)
    loop = loop_of(plan_of(SCANNED), [memory(*ROWS, end=True)], tmp_path, batch_rows=400)
    loop.runner = LocalRunner()
    with pytest.raises(BrokenOffError):
        loop.run()
    assert pieces == 5
    assert loop.manifest.batch == -1
    again = loop_of(plan_of(SCANNED), [memory(*ROWS, end=True)], tmp_path, batch_rows=400)
    again.run()
    assert again.manifest.finished
    assert pieces > 100
