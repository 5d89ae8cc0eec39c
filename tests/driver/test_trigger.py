"""When batches start: as soon as there is input, and not before the trigger allows it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import tidegate as tg
from tests.driver.scene import COUNTS, PASSED, loop_of, memory, plan_of, rows_of, table
from tidegate import schedule
from tidegate.driver.connection import Connection
from tidegate.driver.loop import Loop
from tidegate.errors import OptionError
from tidegate.plan.lowering.lower import lower
from tidegate.query.output import Output
from tidegate.sink.folder.files import FileSink
from tidegate.sink.memory import MemorySink
from tidegate.source.generator import open_generator
from tidegate.testing.clock import ManualClock

ROWS = [(float(t), "a", t) for t in range(6)]


class Watch(ManualClock):
    """A clock on which all batches take the same time; it notes when each is begun."""

    def __init__(self, takes_s: float = 0.0) -> None:
        super().__init__()
        self.starts: list[float] = []
        self.waits = 0
        self._takes_s = takes_s

    def wait(self, word: Event, seconds: float) -> None:
        self.waits += 1
        super().wait(word, seconds)

    def observe(self, step: str, batch: int) -> None:
        if step == "after gate":
            self.starts.append(self.now())
            self.advance(self._takes_s)


def run(loop: Loop, clock: Watch) -> list[float]:
    loop._observe = clock.observe
    loop.run()
    return [round(start, 6) for start in clock.starts]


@pytest.mark.parametrize("trigger_s", [None, 0.0, 1.0, 2.5])
def test_batches_start_as_far_apart_as_they_are_asked_to(
    trigger_s: float | None, tmp_path: Path
) -> None:
    clock, sink = Watch(), MemorySink()
    loop = loop_of(
        plan_of(PASSED),
        [memory(*ROWS, end=True)],
        tmp_path,
        sink,
        clock,
        batch_rows=2,
        trigger_s=trigger_s,
    )
    assert run(loop, clock) == [n * (trigger_s or 0.0) for n in range(3)]
    assert clock.now() == 2 * (trigger_s or 0.0), "nothing is waited for after the last one"
    assert len(rows_of(sink)) == 6


def live_loop(clock: Watch, query: str, folder: Path, **options: Any) -> Loop:
    source = open_generator(f"generator:trades?{query}", "s", "ts", clock)
    stream = tg.Session(master="none").stream("generator:trades?rows=1", time="ts")
    plan = lower((Output(None, stream.node),))
    return loop_of(plan, [Connection(0, source)], folder, None, clock, **options)


@pytest.mark.parametrize(("trigger_s", "apart_s"), [(None, 0.03), (0.02, 0.03), (0.05, 0.05)])
def test_over_a_live_stream_a_batch_starts_when_the_one_before_is_done(
    trigger_s: float | None, apart_s: float, tmp_path: Path
) -> None:
    clock = Watch(takes_s=0.03)
    loop = live_loop(clock, "rows=600&pace=1000", tmp_path, trigger_s=trigger_s)
    starts = run(loop, clock)
    assert loop.manifest.counters["rows_in"] == 600
    apart = [round(b - a, 6) for a, b in pairwise(starts)]
    assert set(apart[:-1]) == {apart_s}, "each takes what has come during the one before it"
    assert apart[-1] <= apart_s


def test_a_run_without_input_sleeps_until_the_next_row_is_due(tmp_path: Path) -> None:
    """Rows are 125 ms apart, and batches take no time: each row is noticed when it comes."""
    clock = Watch()
    loop = live_loop(clock, "rows=5&pace=8", tmp_path)
    starts = run(loop, clock)
    assert starts == [0.0, 0.125, 0.25, 0.375, 0.5]
    assert clock.waits == 4, "it did not look in between"


def test_an_append_wakes_a_run_that_waits(tmp_path: Path) -> None:
    """The clock of the run stands still, so nothing but the word of the source can wake it."""

    class Standing(ManualClock):
        def wait(self, word: Event, seconds: float) -> None:
            waiting.set()
            assert word.wait(60), "nobody gave the word"

    waiting, source, sink = Event(), memory(ROWS[0]), MemorySink()
    loop = loop_of(plan_of(PASSED), [source], tmp_path, sink, Standing())
    running = schedule.current().start("run", loop.run)
    for row in ROWS[1:]:
        waiting.wait(60)
        waiting.clear()
        source.append(table(row))
    source.end()
    assert running.result(60).finished
    assert len(rows_of(sink)) == 6
    assert not source._listeners, "a run that is over is not called any more"


def test_stop_does_not_wait_for_the_trigger() -> None:
    source = memory(*ROWS)
    stream = tg.Session(master="none").stream(source, time="ts")
    query = stream.start(sink=tg.sink.memory(), batch_rows=2, trigger="1 hour")
    while query.status()["rows_in"] < 2:
        query.wait(0.01)
    assert query.stop().counters["rows_in"] == 2


@pytest.mark.parametrize(
    ("trigger", "message"),
    [
        ("soon", "trigger: a duration must be a number and a unit; got 'soon'"),
        ("-1 second", "--trigger: must not be negative; got -1 seconds"),
        (-1, "--trigger: must not be negative; got -1 seconds"),
    ],
)
def test_a_trigger_that_cannot_be(trigger: str | int, message: str) -> None:
    stream = tg.Session(master="none").stream(memory(*ROWS), time="ts")
    with pytest.raises(OptionError, match=message):
        stream.start(sink=tg.sink.memory(), trigger=trigger)


def test_a_batch_without_rows_leaves_no_folder(tmp_path: Path) -> None:
    """Neither does one that is run again after a crash; the folder is found to be the right one."""
    plan, out = plan_of(COUNTS), tmp_path / "out"
    rows = [(float(t), "a", t) for t in (1, 2, 3, 12, 13, 40)]

    def loop(end: bool, folder: Path = out) -> Loop:
        return loop_of(
            plan, [memory(*rows, end=end)], tmp_path / "c", FileSink(folder), batch_rows=1
        )

    first = loop(end=False)
    for _ in range(3):
        assert first.step() is not None
    first.close()
    assert list(out.iterdir()) == []
    (tmp_path / "other" / "batch=00000001").mkdir(parents=True)
    with pytest.raises(OptionError, match="a new run needs an output folder without results"):
        loop(end=False, folder=tmp_path / "other")
    second = loop(end=False)
    for _ in range(2):
        assert second.step() is not None
    second.close()
    assert [p.name for p in out.glob("batch=*")] == ["batch=00000003"]
    with pytest.raises(OptionError, match="up to batch=00000003; got no batch=00000003"):
        loop(end=True, folder=tmp_path / "empty")
    third = loop(end=True)
    assert third.run().finished
    assert third.manifest.batch == 5
    names = sorted(p.name for p in out.glob("batch=*"))
    assert names == ["batch=00000003", "batch=00000005"]
    assert third.manifest.written == {"": [5, 3]}
