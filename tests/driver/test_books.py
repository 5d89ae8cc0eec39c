"""Observers of committed batches: who is told what and when, and what an error of one does."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from tests.driver.scene import PASSED, loop_of, memory, plan_of, table
from tidegate.driver import loop as loop_module
from tidegate.driver.batch_observer import BatchObserver, CommittedBatch
from tidegate.driver.loop import Loop
from tidegate.driver.report.status import status_of


class Noting(BatchObserver):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def committed(self, batch: CommittedBatch) -> None:
        self.told.append((batch.manifest.batch, batch.previous.batch, batch.report is None))

    def close(self) -> None:
        self.told.append("closed")


class Failing(BatchObserver):
    """Fails at every batch."""

    def committed(self, batch: CommittedBatch) -> None:
        raise ValueError(f"batch {batch.manifest.batch}")


def test_each_observer_is_told_of_each_committed_batch_in_order(tmp_path: Path) -> None:
    source = memory((1, "a", 0), (2, "b", 1))
    loop = loop_of(plan_of(PASSED), [source], tmp_path)
    first, last = Noting(), Noting()
    loop.books.observers = (first, *loop.books.observers, last)
    assert loop.step() is not None
    source.append(table((3, "c", 2)))
    assert loop.step() is not None
    loop.close()
    # The report is made between the first and the last of them.
    assert first.told == [(0, -1, True), (1, 0, True), "closed"]
    assert last.told == [(0, -1, False), (1, 0, False), "closed"]


class Asking(BatchObserver):
    """Asks for the status while a batch is booked, as another thread may."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.told: list[tuple[int, int]] = []

    def committed(self, batch: CommittedBatch) -> None:
        found = status_of(self._loop)
        self.told.append((found["batch"], found["rows_in"]))


def test_a_status_has_no_batch_whose_rows_are_not_counted_yet(tmp_path: Path) -> None:
    source = memory((1, "a", 0), (2, "b", 1))
    loop = loop_of(plan_of(PASSED), [source], tmp_path)
    first, last = Asking(loop), Asking(loop)
    loop.books.observers = (first, *loop.books.observers, last)
    assert loop.step() is not None
    assert loop.step() is None
    source.append(table((3, "c", 2)))
    assert loop.step() is not None
    assert first.told == [(-1, 0), (0, 2)]
    assert last.told == [(0, 2), (1, 3)]  # a batch that was told is in the status
    loop.close()


def test_a_batch_counts_though_an_observer_fails(tmp_path: Path) -> None:
    source = memory((1, "a", 0))
    loop = loop_of(plan_of(PASSED), [source], tmp_path)
    loop.books.observers = (*loop.books.observers, Failing())
    with pytest.raises(ValueError, match="batch 0"):
        loop.run()
    again = loop_of(plan_of(PASSED), [source], tmp_path)
    assert again.manifest.batch == 0
    again.close()


def test_the_loop_stays_small() -> None:
    """What is new after a batch is an observer, not a line of the loop."""
    source = inspect.getsource(loop_module)
    imports = [n for n in ast.parse(source).body if isinstance(n, ast.Import | ast.ImportFrom)]
    assert len(imports) <= 20
    steps = (Loop.step, Loop._step)
    assert max(len(inspect.getsource(step).splitlines()) for step in steps) <= 30
