"""When batches start: not before the trigger allows it, and not of every row of a live stream."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import tidegate as tg
from tests.driver.scene import COUNTS, PASSED, loop_of, memory, plan_of, rows_of
from tidegate.driver.connection import Connection
from tidegate.driver.loop import Loop
from tidegate.errors import OptionError
from tidegate.plan.lower import lower
from tidegate.query.output import Output
from tidegate.sink.files import FileSink
from tidegate.sink.memory import MemorySink
from tidegate.source.generator import open_generator
from tidegate.testing.clock import ManualClock

ROWS = [(float(t), "a", t) for t in range(6)]


class Watch(ManualClock):
    """A clock on which batches take no time; it notes when each is begun."""

    def __init__(self) -> None:
        super().__init__()
        self.starts: list[float] = []

    def observe(self, step: str, batch: int) -> None:
        if step == "after gate":
            self.starts.append(self.now())


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


@pytest.mark.parametrize("trigger_s", [None, 1.0])
def test_a_live_generator_makes_a_few_batches_a_second(
    trigger_s: float | None, tmp_path: Path
) -> None:
    clock = Watch()
    source = open_generator("generator:trades?rows=3000&pace=1000", "s", "ts", clock)
    stream = tg.Session(master="none").stream("generator:trades?rows=1", time="ts")
    plan = lower((Output(None, stream.node),))
    loop = loop_of(plan, [Connection(0, source)], tmp_path, None, clock, trigger_s=trigger_s)
    starts = run(loop, clock)
    assert loop.manifest.counters["rows_in"] == 3000
    apart = {round(b - a, 6) for a, b in pairwise(starts)}
    assert min(apart) >= (trigger_s or 0.2)
    assert 3 <= len(starts) <= 17


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
    assert [p.name for p in out.iterdir()] == ["batch=00000003"]
    with pytest.raises(OptionError, match="up to batch=00000003; got no batch=00000003"):
        loop(end=True, folder=tmp_path / "empty")
    third = loop(end=True)
    assert third.run().finished
    assert third.manifest.batch == 5
    names = sorted(p.name for p in out.iterdir())
    assert names == ["batch=00000003", "batch=00000005"]
    assert third.manifest.written == {"": [5, 3]}
