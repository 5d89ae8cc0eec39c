"""How the work of a batch is divided among buckets: by a plain count, for every operator."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.driver.scene import SCHEMA, Row, drain, loop_of, memory, plan_of, table
from tests.execute.test_shared_task import SharedTasks
from tidegate import schedule
from tidegate.driver.connection import Connection
from tidegate.driver.loop import Loop
from tidegate.execute.job import Job, Outcome
from tidegate.execute.local import LocalRunner
from tidegate.execute.runner import JobRunner
from tidegate.plan.join.method import JoinOptions
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.plan.physical import Plan
from tidegate.query.node.node import StreamDef
from tidegate.query.output import Output, single
from tidegate.route.bucket import bucket_of
from tidegate.schedule import Threads
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.state.segment.segment import Segment, read_segment
from tidegate.testing import ManualClock

BUCKETS, INSTANCES, RANGE_S = 8, 3, 4
KEYS = "abcdefg"
CHUNKS = st.lists(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(KEYS), st.integers(0, 9)),
        min_size=1,
        max_size=8,
    ),
    min_size=1,
    max_size=5,
)
"""Batches of (seconds after the row before, key, value)."""

TUMBLING = f"SELECT k, {{}} AS v FROM s [RANGE {RANGE_S} SECONDS] GROUP BY k"
TUPLES = "SELECT k, SUM(v) AS v FROM s [ROWS 3 SLIDE 2] GROUP BY k"
PAIRS = "SELECT a.v AS x, b.v AS y FROM s AS a [RANGE {0}] JOIN s AS b [RANGE {0}] ON a.k = b.k"


@dataclass(frozen=True)
class Ran:
    """A job, what came out, and the rows of its state before it and of what it added."""

    job: Job
    outcomes: list[Outcome]
    stored: Mapping[str, list[dict[str, Any]]]
    added: Mapping[str, list[dict[str, Any]]]

    @property
    def work(self) -> dict[int, float]:
        """By bucket, what all instances say together; nobody speaks for another's buckets."""
        found = {}
        for outcome in self.outcomes:
            own = self.job.mapping.owned_by(outcome.instance)
            work = vector(outcome)
            assert len(work) in (0, len(own)), "nothing where nothing came"
            found |= {b: float(w) for b, w in zip(own, work) if w}
        return found


def vector(outcome: Outcome) -> npt.NDArray[np.float32]:
    """What an instance says of its buckets, ascending."""
    return np.frombuffer(outcome.bucket_work, "<f4")


class Recorded(JobRunner):
    """Runs jobs as another does, and keeps what they were and what came out."""

    def __init__(self, runner: JobRunner) -> None:
        self._runner = runner
        self.runs: list[Ran] = []

    def run(self, job: Job) -> list[Outcome]:
        stored = {what: rows_in(job, segments) for what, segments in job.state.items()}
        found: list[Outcome] = pickle.loads(pickle.dumps(self._runner.run(job)))
        added = {
            what: [row for o in found for row in rows_in(job, o.segments.get(what, ()))]
            for what in job.state
        }
        self.runs.append(Ran(job, found, stored, added))
        return found

    def release(self, jobs: Sequence[Job]) -> None:
        self._runner.release(jobs)

    def close(self) -> None:
        self._runner.close()


def rows_in(job: Job, segments: Sequence[Segment]) -> list[dict[str, Any]]:
    store = job.store.open()
    return [row for s in segments for row in read_segment(store, s).to_pylist()]


def chunks_of(drawn: Sequence[Sequence[tuple[int, str, int]]]) -> list[list[Row]]:
    """Batches of rows in the order of time."""
    chunks, at = [], 0
    for rows in drawn:
        chunk = []
        for gap, key, value in rows:
            at += gap
            chunk.append((at, key, value))
        chunks.append(chunk)
    return chunks


def bucket(key: str | None) -> int:
    return int(bucket_of([pa.array([key], pa.string())], BUCKETS, 1)[0])


def stepped(
    plan: Plan, chunks: Sequence[Sequence[Row]], folder: Path, runner: JobRunner | None = None
) -> tuple[Loop, list[Ran]]:
    """Run a query, a batch for each chunk, and one for the end of the input."""
    sources = [memory(id=f"source {i}") for i in range(len(plan.streams))]
    connections = [Connection(i, source) for i, source in enumerate(sources)]
    loop = loop_of(plan, connections, folder, buckets=BUCKETS, instances=INSTANCES)
    loop.runner = recorded = Recorded(runner or LocalRunner())
    for chunk in chunks:
        for source in sources:
            source.append(table(*chunk))
        loop.step()
    for source in sources:
        source.end()
    drain(loop)
    loop.close()
    return loop, recorded.runs


def join_plan(routing: str, window: str) -> Plan:
    stream = StreamDef("s", (), "ts", 0, None, SCHEMA)
    node = single(bind(read_script(PAIRS.format(window)), {"s": stream}))
    return lower(node, choices=Choices(JoinOptions(routing=routing, buckets=BUCKETS)))


def ready(chunks: Sequence[Sequence[Row]]) -> Iterator[tuple[list[Row], list[Row]]]:
    """Batch by batch, the rows that become ready, and all that were before."""
    seen: list[Row] = []
    before: list[Row] = []
    for chunk in (*chunks, None):
        seen += chunk or []
        frontier = math.inf if chunk is None else max((r[0] or 0 for r in seen), default=0)
        news = [r for r in seen[len(before) :] if (r[0] or 0) < frontier]
        yield news, before
        before = before + news


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """New folders, one for each example."""
    return (tmp_path_factory.mktemp("run") for _ in iter(int, 1))


@pytest.mark.parametrize("function", ["SUM(v)", "MEDIAN(v)"])
@given(drawn=CHUNKS)
@settings(max_examples=6, phases=[Phase.generate])
def test_an_aggregate(function: str, drawn: Any, folders: Iterator[Path]) -> None:
    """What arrives is a row for each key and pane, and where lists are kept, their values.

    A batch that ends panes touches theirs once more.
    """
    chunks = chunks_of(drawn)
    _, runs = stepped(plan_of(TUMBLING.format(function)), chunks, next(folders))
    cost = 1 if function == "SUM(v)" else 0
    found, seen, sealed = [], list[Row](), -math.inf
    for chunk in (*chunks, None):
        seen += chunk or []
        newest = max(r[0] or 0 for r in seen) // RANGE_S
        before, sealed = sealed, math.inf if chunk is None else newest
        work: Counter[int] = Counter()
        for rows in (chunk or [], [r for r in seen if before <= (r[0] or 0) // RANGE_S < sealed]):
            panes = {(r[1], (r[0] or 0) // RANGE_S) for r in rows}
            work.update(bucket(key) for key, _ in panes)
            work.update(bucket(r[1]) for r in rows if not cost)
        found.append(dict(work))
    assert [ran.work for ran in runs] == found


@given(drawn=CHUNKS)
@settings(max_examples=6, phases=[Phase.generate])
def test_windows_of_tuples(drawn: Any, folders: Iterator[Path]) -> None:
    """New tuples, and the stored ones of their groups."""
    chunks = chunks_of(drawn)
    _, runs = stepped(plan_of(TUPLES), chunks, next(folders))
    news_of = [news for news, _ in ready(chunks)]
    for ran, news in zip(runs, news_of, strict=True):
        touched = {key for _, key, _ in news}
        old = [key for row in ran.stored["tuples"] if (key := list(row.values())[6]) in touched]
        assert ran.work == Counter(bucket(key) for key in [*old, *(r[1] for r in news)])


@given(drawn=CHUNKS)
@settings(max_examples=6, phases=[Phase.generate])
def test_a_join_by_key(drawn: Any, folders: Iterator[Path]) -> None:
    """Each new tuple of both sides, and each pair of equal keys within the window, once."""
    chunks = chunks_of(drawn)
    _, runs = stepped(join_plan("key", f"{RANGE_S} SECONDS"), chunks, next(folders))
    found = []
    for news, before in ready(chunks):
        work = Counter(bucket(key) for _, key, _ in news for _ in range(2))
        numbered = [(len(before) <= i, *row) for i, row in enumerate([*before, *news])]
        for new, at, key, _ in numbered:
            for also_new, other, same, _ in numbered:
                near = abs((at or 0) - (other or 0)) <= RANGE_S
                work[bucket(key)] += near and key == same and (new or also_new)
        found.append({b: n for b, n in work.items() if n})
    assert [ran.work for ran in runs] == found
    for outcome in (o for ran in runs for o in ran.outcomes):
        assert vector(outcome).sum() == outcome.tuples + outcome.counts["compared"]


@given(drawn=CHUNKS)
@settings(max_examples=6, phases=[Phase.generate])
def test_a_join_in_turn(drawn: Any, folders: Iterator[Path]) -> None:
    """Each new tuple, and what a bucket holds of a side once for each new tuple of the other."""
    chunks = chunks_of(drawn)
    _, runs = stepped(join_plan("round-robin", "1 HOUR"), chunks, next(folders))
    assert len(runs) == len(chunks) + 1
    for ran, (news, _) in zip(runs[:-1], ready(chunks)):  # at the end nothing is stored any more
        work: Counter[int] = Counter()
        for side in ("left", "right"):
            new = [row["bucket"] for row in ran.added[side]]
            held = [*(row["bucket"] for row in ran.stored[side]), *new]
            assert len(new) == len(news)
            work.update(new)
            work.update(held * len(news))
        assert ran.work == work


class Costly(tg.Process):
    """Takes as many seconds for a tuple as it says, and asks to be woken, which takes one."""

    output = {"v": "bigint"}  # noqa: RUF012
    clock = ManualClock()

    def on_tuple(self, tuple: Any, keys: list[str]) -> None:
        self.clock.advance(tuple.v)
        self.wake(tuple.ts)

    def on_frontier(self, ts: Any) -> None:
        self.clock.advance(1)


class Clocked(Threads):
    """The threads of the system, with the clock that is advanced."""

    clock = Costly.clock


def process_plan() -> Plan:
    stream = tg.Session(master="none").stream(memory(), time="ts", name="s")
    return lower((Output(None, stream.process(Costly, keys="k").node),))


@given(drawn=CHUNKS)
@settings(max_examples=6, phases=[Phase.generate])
def test_a_process(drawn: Any, folders: Iterator[Path]) -> None:
    """The time of each object: it is what the CPU time of the instances is made of."""
    chunks = chunks_of(drawn)
    with schedule.using(Clocked()):
        loop, runs = stepped(process_plan(), chunks, next(folders))
    seen = list(ready(chunks))
    for ran, (news, _) in zip(runs, seen, strict=True):
        work: Counter[int] = Counter()
        for _, key, value in news:
            work[bucket(key)] += value or 0
        woken = {(at, bucket(key)) for at, key, _ in news}
        work.update(b for _, b in woken)
        assert ran.work == {b: n for b, n in work.items() if n}
        (last,) = loop.books.load.observed
    assert last.batch == runs[-1].job.batch
    assert last.buckets.sum() == sum(runs[-1].work.values())


@pytest.mark.parametrize(
    "plan",
    [
        plan_of(TUMBLING.format("SUM(v)")),
        plan_of(TUPLES),
        join_plan("key", "4 SECONDS"),
        join_plan("round-robin", "4 SECONDS"),
        plan_of("SELECT k, v FROM s WHERE v > 1"),
    ],
    ids=["aggregate", "windows of tuples", "join by key", "join in turn", "stateless"],
)
@pytest.mark.parametrize("groups", [None, 2], ids=["map and instance", "two groups"])
def test_tasks_elsewhere_say_the_same(plan: Plan, groups: int | None, tmp_path: Path) -> None:
    chunks = [[(t / 9, KEYS[t * t % 7], t % 5) for t in range(n, n + 60)] for n in (0, 60, 120)]
    _, here = stepped(plan, chunks, tmp_path / "here")
    _, there = stepped(plan, chunks, tmp_path / "there", SharedTasks(groups))
    assert [ran.work for ran in here] == [ran.work for ran in there]
    assert len(here) == 4
    told = sum(sum(ran.work.values()) for ran in here)
    assert told > 40 or plan.subqueries[0].operator.kind == "stateless"


@pytest.mark.parametrize(
    "plan",
    [plan_of(TUMBLING.format("MEDIAN(v)")), plan_of(TUPLES), join_plan("key", "4 SECONDS")],
    ids=["aggregate", "windows of tuples", "join by key"],
)
def test_the_bucket_of_a_hot_key_is_found(plan: Plan, tmp_path: Path) -> None:
    rows = [(t / 20, "c" if t % 10 else KEYS[t // 10 % 7], t) for t in range(400)]
    loop, runs = stepped(plan, [rows[:200], rows[200:]], tmp_path)
    work: Counter[int] = Counter()
    for ran in runs:
        work.update(ran.work)
    (hottest, most), (_, second), *_ = work.most_common()
    assert hottest == bucket("c")
    assert most > 2 * second
    (subquery,), mapping = loop.pipeline.subqueries, runs[-1].job.mapping
    loads = loop.pipeline.subqueries.loads(subquery.name)
    assert hottest == max(mapping.owned_by(mapping.owners[hottest]), key=lambda b: loads[b])
