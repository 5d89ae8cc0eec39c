"""Output that is lost after the commit: the batch runs again, to exactly where it ended."""

from __future__ import annotations

import dataclasses
import logging
import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from tests.driver.scene import (
    COUNTS,
    PASSED,
    Row,
    csv,
    drain,
    loop_of,
    memory,
    opened,
    plan_of,
    table,
)
from tidegate.batch import BatchId
from tidegate.driver.connection import Connection
from tidegate.driver.loop import Loop
from tidegate.errors import LostOutputError
from tidegate.plan.physical import Plan
from tidegate.sink.batch_output import HeldParts
from tidegate.sink.protocol import Opening
from tidegate.sink.receipt import Receipt
from tidegate.source.memory import MemorySource
from tidegate.state.inspect import inspect
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store
from tidegate.testing.clock import ManualClock


class Leaky:
    """A place that outlives its runs, and loses what is not published when it is told to."""

    parallel = False
    side_outputs = True
    uri = None

    def __init__(self) -> None:
        self.batches: dict[int, pa.Table] = {}
        self.given: list[int] = []
        self.loses: set[int] = set()
        self._held: dict[int, HeldParts] = {}

    def open(self, opening: Opening) -> None:
        self._held = {}
        self._schema = opening.schema

    def begin(self, batch: BatchId) -> HeldParts:
        self._held = {batch: HeldParts()}
        return self._held[batch]

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        if batch in self.loses:
            self.loses.discard(batch)
            raise LostOutputError("leaky", "must hold", "a hole", "Fix it.")
        if batch in self._held:
            self.given.append(batch)
            self.batches[batch] = self._held.pop(batch).output(self._schema).rows

    def close(self) -> None:
        pass


def replayed(plan: Plan, sources: object, folder: Path, lost: int, **options: object) -> Leaky:
    """Run, lose the output of a batch, restart with other options; what comes of it."""
    sink = Leaky()
    sink.loses = {lost}
    first = loop_of(plan, sources(), folder, sink, batch_rows=3, instances=2)
    with pytest.raises(LostOutputError, match="Run again: it is made once more"):
        first.run()
    assert max(sink.batches, default=-1) < lost
    sink.loses = {lost}
    loop_of(plan, sources(), folder, sink, **options).run()
    return sink


ROWS: list[Row] = [(i * 3.0, "ab"[i % 2], i) for i in range(20)]
LATE: list[Row] = [(30.0, "a", 7), (None, "b", 8), (31.0, "a", 9)]


@pytest.mark.parametrize("place", [0, 1, 3, -1])
@pytest.mark.parametrize("sql", [COUNTS, PASSED])
def test_a_batch_ends_where_it_ended_whatever_the_options_are_now(
    sql: str, place: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plan = plan_of(sql, disorder_s=4)
    rows = [*ROWS[:12], *LATE, *ROWS[12:]]
    steady = Leaky()
    loop_of(plan, [memory(*rows, end=True)], tmp_path / "steady", steady, batch_rows=3).run()
    lost = sorted(steady.batches)[place]
    with caplog.at_level(logging.WARNING):
        sink = replayed(
            plan,
            lambda: [memory(*rows, end=True)],
            tmp_path / "lost",
            lost,
            batch_rows=50,
            instances=3,
        )
    until = [{b: t for b, t in s.batches.items() if b <= lost} for s in (steady, sink)]
    assert until[0] == until[1]
    whole = [pa.concat_tables(s.batches[b] for b in sorted(s.batches)) for s in (steady, sink)]
    assert whole[0].equals(whole[1])
    assert sink.given == sorted(set(sink.given))
    (told,) = caplog.messages
    assert (
        told == f"leaky: must hold; got a hole. Batch {lost} runs again, from the state before it."
    )


def test_a_crash_while_it_runs_again_changes_nothing(tmp_path: Path) -> None:
    """The manifest counts until that of the second run is there."""
    plan, sink = plan_of(COUNTS), Leaky()
    sink.loses = {3}
    with pytest.raises(LostOutputError):
        loop_of(plan, [memory(*ROWS, end=True)], tmp_path, sink, batch_rows=3).run()
    committed = newest(tmp_path)
    assert committed.batch == 3
    for step in ("after gate", "after operate", "before commit"):
        sink.loses = {3}
        loop = loop_of(
            plan, [memory(*ROWS, end=True)], tmp_path, sink, batch_rows=9, observer=_dies(step)
        )
        with pytest.raises(KeyboardInterrupt):
            loop.run()
        assert newest(tmp_path) == committed
    sink.loses = {3}
    loop_of(plan, [memory(*ROWS, end=True)], tmp_path, sink, batch_rows=9).run()
    steady = Leaky()
    loop_of(plan, [memory(*ROWS, end=True)], tmp_path / "steady", steady, batch_rows=3).run()
    assert sink.batches[3].equals(steady.batches[3])
    assert inspect(Store.open(tmp_path), verify=True)["verified"]["problems"] == []
    assert inspect(Store.open(tmp_path))["unreferenced"] == []


def newest(place: Path) -> Manifest:
    """The newest state of a checkpoint, whoever has it now."""
    found = Store.open(place).latest()
    assert found is not None
    return dataclasses.replace(found, owner=0, holder={})


def _dies(at: str):
    def observe(step: str, batch: int) -> None:
        if step == at:
            raise KeyboardInterrupt

    return observe


@pytest.mark.parametrize("seed", range(12))
def test_folders_that_got_files_in_the_batch_and_since(seed: int, tmp_path: Path) -> None:
    """New files keep the places they had, whatever came before them in the listing since."""
    chance = random.Random(f"folders {seed}")
    plan = plan_of(chance.choice([COUNTS, PASSED]), disorder_s=chance.choice([0, 5]))
    inputs = [tmp_path / name for name in ("one", "two")]
    for folder in inputs:
        folder.mkdir()
    written = 0

    def write(files: int) -> None:
        nonlocal written
        for _ in range(files):
            start = chance.randrange(0, 60)
            name = f"{chance.choice('abcdef')}{written}.csv"
            rows = [(start + i * chance.random(), "k", written * 10 + i) for i in range(5)]
            csv(chance.choice(inputs) / name, *rows)
            written += 1

    def until_a_window_closes(loop: Loop) -> None:
        drain(loop)
        for folder in inputs:
            csv(folder / "z.csv", (100, "k", 4), (200, "k", 5))
        drain(loop)

    def sources() -> list[Connection]:
        return [opened(str(folder)) for folder in inputs]

    for folder in inputs:
        csv(folder / "m.csv", (1, "k", 1), (50, "k", 2), (90, "k", 3))
    sink = Leaky()
    loop = loop_of(plan, sources(), tmp_path / "c", sink, follow=True, batch_rows=4)
    for _ in range(chance.randrange(3)):
        write(chance.randrange(4))
        loop.step()
    write(chance.choice([1, 5, 80]))
    sink.loses = set(range(loop.manifest.batch + 1, 1000))  # the next that has something
    rows = chance.choice([3, 7, 200])
    loop.options = type(loop.options)(**{**loop.options.__dict__, "batch_rows": rows})
    with pytest.raises(LostOutputError):
        until_a_window_closes(loop)
    loop.close()
    before = Store.open(tmp_path / "c").latest()
    assert before is not None
    lost = before.batch
    write(chance.randrange(5))
    sink.loses = {lost}
    again = loop_of(plan, sources(), tmp_path / "c", sink, follow=True, batch_rows=2)
    assert again.step() is not None
    after = again.manifest
    again.close()
    assert after.batch == before.batch == lost
    assert after.frontier_us == before.frontier_us
    assert after.counters == before.counters
    then, now = _positions(before.sources), _positions(after.sources)
    assert {s: p for s, p in then.items() if s in now} == {
        s: p for s, p in now.items() if s in then
    }
    # Whether a file that was read to its end may still grow is another matter at each start.
    read = [sum(e.get("consumed", 1) for e in m.sources) for m in (before, after)]
    assert read[0] == read[1]
    assert inspect(Store.open(tmp_path / "c"), verify=True)["verified"]["problems"] == []


def _positions(sources: object) -> dict[object, object]:
    """What was read of each source, and its place among the others."""
    keys = ("order", "position", "floor_us", "waiting_from", "waiting_floor_us", "promised_us")
    return {
        (entry["inlet"], entry["id"]): [entry[k] for k in keys]
        for entry in sources
        if "log" not in entry
    }


def test_sources_that_joined_and_left_in_the_batch(tmp_path: Path) -> None:
    plan, sink = plan_of(PASSED), Leaky()
    first, more = csv(tmp_path / "a.csv", *ROWS[:6]), csv(tmp_path / "b.csv", *ROWS[6:12])
    loop = loop_of(plan, [opened(first)], tmp_path / "c", sink, follow=True, batch_rows=3)
    loop.step()
    loop.controls.announce(opened(more))
    loop.controls.remove(str(tmp_path / "a.csv"))
    sink.loses = {1}
    with pytest.raises(LostOutputError):
        drain(loop)
    loop.close()
    before = Store.open(tmp_path / "c").latest()
    sink.loses = {1}
    again = loop_of(plan, [opened(first)], tmp_path / "c", sink, follow=True, batch_rows=2)
    assert again.step() is not None
    assert before is not None
    assert again.manifest.sources == before.sources
    again.close()


def test_rows_that_a_program_has_not_given_yet_are_awaited(tmp_path: Path) -> None:
    plan, sink = plan_of(PASSED), Leaky()
    sink.loses = {2}
    with pytest.raises(LostOutputError):
        loop_of(plan, [memory(*ROWS)], tmp_path, sink, batch_rows=4).run()
    source = memory(*ROWS[:9])
    sink.loses = {2}
    loop = loop_of(plan, [source], tmp_path, sink, batch_rows=4)
    assert loop.step() is None
    source.append(table(*ROWS[9:]))
    assert loop.step() is not None
    assert loop.manifest.batch == 2
    assert sink.batches[2].num_rows == 4
    loop.close()


@pytest.mark.parametrize("change", ["shorter", "other times", "gone"])
def test_input_that_is_not_what_it_was(change: str, tmp_path: Path) -> None:
    plan, sink, path = plan_of(PASSED), Leaky(), tmp_path / "a.csv"
    uri = csv(path, *ROWS)
    sink.loses = {2}
    with pytest.raises(LostOutputError):
        loop_of(plan, [opened(uri, follow=False)], tmp_path / "c", sink, batch_rows=4).run()
    others = {"shorter": ROWS[:10], "other times": [(t + 1, k, v) for t, k, v in ROWS]}
    kept = newest(tmp_path / "c")
    if change == "gone":
        path.rename(tmp_path / "b.csv")
        csv(path)
    else:
        csv(path, *others[change])
    sink.loses = {2}
    with pytest.raises(LostOutputError) as caught:
        loop_of(plan, [opened(uri, follow=False)], tmp_path / "c", sink, batch_rows=4).run()
    message = str(caught.value)
    assert message.startswith("leaky: must hold; got a hole, and the batch cannot run again: ")
    assert message.endswith("Or: Fix it.")
    assert newest(tmp_path / "c") == kept


def test_without_the_state_before_it_a_batch_cannot_run_again(tmp_path: Path) -> None:
    plan, sink = plan_of(COUNTS), Leaky()
    sink.loses = {2}
    source: MemorySource = memory(*ROWS, end=True)
    with pytest.raises(LostOutputError):
        loop_of(plan, [source], tmp_path, sink, batch_rows=4).run()
    (tmp_path / "manifest/00000001.json").unlink()
    sink.loses = {2}
    with pytest.raises(
        LostOutputError, match=r"cannot run again: .*must have the manifest of batch 1"
    ):
        loop_of(plan, [source], tmp_path, sink, batch_rows=4)


def test_what_a_silent_source_let_go_is_not_decided_again(tmp_path: Path) -> None:
    """Nobody is silent yet for the run that starts: the frontier is that of the manifest."""
    plan = plan_of(COUNTS, idle_s=10)

    def stepped(sink: Leaky, folder: Path, wait_s: float) -> Loop:
        sources = [memory(*ROWS, id="a"), memory((1, "b", 5), id="b")]
        clock = ManualClock()
        loop = loop_of(plan, sources, folder, sink, clock, follow=True)
        loop.step()
        clock.advance(wait_s)
        return loop

    steady, sink = Leaky(), Leaky()
    loop = stepped(steady, tmp_path / "steady", 20)
    loop.step()
    (decided,) = steady.batches
    assert decided == 1
    sink.loses = {decided}
    first = stepped(sink, tmp_path / "lost", 20)
    with pytest.raises(LostOutputError):
        first.step()
    first.close()
    sink.loses = {decided}
    again = stepped(sink, tmp_path / "lost", 0)
    assert sink.batches[decided].equals(steady.batches[decided])
    assert again.manifest.frontier_us == loop.manifest.frontier_us
