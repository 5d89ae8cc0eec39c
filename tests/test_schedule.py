"""The seam of threads: those of the system, and another schedule in their place."""

from __future__ import annotations

import threading

import pytest

from tidegate import schedule
from tidegate.clock import SystemClock
from tidegate.schedule import Threads


def test_work_runs_in_a_thread_of_its_name_and_its_failure_is_in_the_future() -> None:
    running = schedule.current().start("named", lambda: threading.current_thread().name)
    assert running.result() == "named"
    failing = schedule.current().start("named", lambda: 1 // 0)
    schedule.wait([running, failing])
    with pytest.raises(ZeroDivisionError):
        failing.result()


def test_a_line_keeps_the_order() -> None:
    done: list[int] = []
    go = threading.Event()
    line = schedule.current().line("one")
    line.submit(go.wait)
    futures = [line.submit(done.append, number) for number in range(5)]
    go.set()
    line.shutdown()
    assert done == list(range(5))
    assert all(future.done() for future in futures)


def test_another_schedule_is_there_until_the_block_ends() -> None:
    before, other = schedule.current(), Threads()
    with schedule.using(other):
        assert schedule.current() is other
    assert schedule.current() is before
    assert isinstance(before.clock, SystemClock)
