"""Joins by ranges: what is searched and looked at, counted by instance, for values of any kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.driver.scene import compacted
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.elastic.request import Request, Scale
from tidegate.operate.join.operator import StreamJoin
from tidegate.operate.join.placement import survey
from tidegate.operate.operator import Arrival, InstanceWork, MapWork, Result, Share
from tidegate.plan.join.method import JoinOptions
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.query.output import single
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.script import streams_of
from tidegate.sink.memory import MemorySink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

ROWS, BATCH = 6_144, 1_536
"""Tuples of a side, and of both in a batch."""

TIME = "[RANGE 1 SECOND]"
TUPLES = "[ROWS 1000]"
NEAR = "l.x BETWEEN r.x - 10 AND r.x + 10"
EQUAL = "l.x = r.x"

Values = npt.NDArray[np.float64]
MAKE: dict[str, Callable[[np.random.Generator, int], Values]] = {
    "uniform": lambda random, n: random.uniform(0, 100_000, n),
    "zipf": lambda random, n: np.minimum(random.zipf(1.1, n), 100_000).astype(float),
    "one value": lambda random, n: np.where(
        random.random(n) < 0.1, 500.0, random.uniform(0, 100_000, n)
    ),
    "all equal": lambda random, n: np.full(n, 7.0),
    "drift": lambda random, n: np.arange(n) * 5.0 + random.uniform(0, 20_000, n),
}


def streams(folder: Path, name: str, rows: int = ROWS) -> str:
    """Both streams in files, 1,000 tuples of each in a second."""
    lines = []
    for seed, side in enumerate("lr"):
        random = np.random.default_rng(seed)
        times = np.arange(rows) * 1_000
        values = {"x": MAKE[name](random, rows), "n": np.arange(rows)}
        table = pa.table({"ts": times.view("datetime64[us]"), **values})
        pq.write_table(table, folder / f"{side}.parquet")
        lines.append(f"CREATE STREAM {side} FROM '{folder}/{side}.parquet' TIME ts;\n")
    return "".join(lines)


class Counted:
    """What instances saw and looked at, batch by batch."""

    def __init__(self) -> None:
        self.seen: dict[int, dict[int, int]] = defaultdict(dict)
        self.looks: dict[int, dict[int, int]] = defaultdict(dict)

    def note(self, work: InstanceWork, arrived: Sequence[Arrival], result: Result) -> None:
        self.seen[work.batch][work.instance] = sum(
            a.rows.num_rows for a in arrived if not a.channel
        )
        self.looks[work.batch][work.instance] = result.counts["compared"]

    def clear(self) -> None:
        self.seen.clear()
        self.looks.clear()

    def warm(self, counts: dict[int, dict[int, int]]) -> npt.NDArray[np.float64]:
        """The sums by instance, of batches that find the windows filled."""
        batches = sorted(counts)[5:]
        instances = range(len(counts[batches[0]]))
        return np.array([sum(counts[b][i] for b in batches) for i in instances], np.float64)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    found, run = Counted(), StreamJoin.run

    def noted(self: StreamJoin, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        result = run(self, work, arrived)
        found.note(work, arrived, result)
        return result

    monkeypatch.setattr(StreamJoin, "run", noted)
    return found


def loop_of(
    sql: str,
    folder: Path,
    instances: int,
    routing: str = "range",
    batch_rows: int = BATCH,
    handover: str = "auto",
) -> tuple[Loop, MemorySink]:
    script = read_script(sql)
    node = single(bind(script, streams_of(script)))
    plan = lower(node, choices=Choices(JoinOptions(routing=routing)))
    sink = MemorySink()
    options = RunOptions(instances=instances, batch_rows=batch_rows, handover=handover)
    return prepare(plan, Place("none"), {None: sink}, options, str(folder)), sink


def query(folder: Path, name: str, window: str = TIME, on: str = NEAR) -> str:
    select = (
        f"SELECT l.x, r.x AS y FROM l {window} JOIN r {window} ON {on} AND (l.n + r.n) % 97 = 0"
    )
    return streams(folder, name) + select


@pytest.fixture(autouse=True)
def surveyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small splits are surveyed too, so that little data will do."""
    monkeypatch.setattr(survey, "SMALL_ROWS", 0)
    monkeypatch.setattr(survey, "EVERY", 1)
    monkeypatch.setattr(survey, "LEAST_TUPLES", 128)


@pytest.mark.parametrize("window", [TIME, TUPLES])
@pytest.mark.parametrize("name", MAKE)
def test_work_is_divided_evenly(name: str, window: str, tmp_path: Path, counted: Counted) -> None:
    sql, results, looks, candidates = query(tmp_path, name, window), [], [], []
    seen = np.zeros(1)
    for instances in (1, 16):
        loop, sink = loop_of(sql, tmp_path / str(instances), instances)
        loop.run()
        results.append(sink.table())
        candidates.append(loop.manifest.counters["comparisons"])
        looks.append(counted.warm(counted.looks))
        alone, seen = seen.sum(), counted.warm(counted.seen)
        counted.clear()
    assert results[0].equals(results[1])
    assert candidates[0] == candidates[1] > 0
    assert looks[1].sum() == pytest.approx(looks[0].sum(), rel=0.05)
    work = looks[1] + 64 * seen
    assert work.max() <= 1.25 * work.mean()
    if name in ("uniform", "drift") and window == TIME:
        assert seen.sum() <= 1.5 * alone, "few are sent to two"


def test_keys_that_are_frequent_are_split(tmp_path: Path, counted: Counted) -> None:
    loop, _ = loop_of(query(tmp_path, "one value", on=EQUAL), tmp_path / "c", 8)
    loop.run()
    work = counted.warm(counted.looks) + 64 * counted.warm(counted.seen)
    assert work.max() <= 1.25 * work.mean()


def parts(sql: str, folder: Path, ways: Sequence[tuple[str, int]]) -> pa.Table:
    """What runs give, one after the other, of two batches each, the last until the end."""
    found: list[pa.Table] = []
    for number, (routing, instances) in enumerate(ways):
        loop, sink = loop_of(sql, folder, instances, routing)
        before = loop.manifest.batch
        for _ in range(2):
            loop.step()
            compacted(loop)
        if number == len(ways) - 1:
            loop.run()
        loop.close()
        found += [sink.batches[b].rows for b in sorted(sink.batches) if b > before]
    return pa.concat_tables(found)


@pytest.mark.parametrize("name", ["one value", "drift"])
def test_grids_outlive_runs_and_other_routings(name: str, tmp_path: Path) -> None:
    sql = query(tmp_path, name)
    whole, expected = loop_of(sql, tmp_path / "a", 1, "round-robin")
    whole.run()
    assert expected.table().num_rows > 100
    ways = [("round-robin", 2), ("range", 5), ("round-robin", 3), ("range", 8), ("range", 2)]
    assert parts(sql, tmp_path / "b", ways).equals(expected.table())
    assert parts(sql, tmp_path / "c", ways[1:]).equals(expected.table())


def test_a_query_that_is_changed_back_finds_what_it_has_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grids of the query between are kept instead of its own."""
    monkeypatch.setattr(survey, "BETTER", 1.0)
    monkeypatch.setattr(survey, "UNEVEN", 1.0)
    hour = "[RANGE 1 HOUR]"
    sql = query(tmp_path, "one value", hour, EQUAL)
    right = pq.read_table(tmp_path / "r.parquet").slice(0, 2_000)
    pq.write_table(right, tmp_path / "r.parquet")
    other = sql.replace("l.x = r.x", "l.x = r.x + 1")
    found = []
    for instances in (1, 4):
        rows: list[pa.Table] = []
        for asked, batches in ((sql, 7), (other, 1), (sql, 3)):
            loop, sink = loop_of(asked, tmp_path / str(instances), instances, batch_rows=1_000)
            before = loop.manifest.batch
            for _ in range(batches):
                loop.step()
            loop.close()
            rows += [sink.batches[b].rows for b in sorted(sink.batches) if b > before]
        found.append(pa.concat_tables(rows))
    assert found[0].num_rows > 100
    assert found[1].equals(found[0])


@pytest.mark.parametrize("handover", ["shared", "state", "window"])
def test_switches_while_cells_change(
    handover: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "BETTER", 1.0)
    monkeypatch.setattr(survey, "UNEVEN", 1.0)
    sql = query(tmp_path, "one value")
    whole, expected = loop_of(sql, tmp_path / "a", 1)
    whole.run()
    loop, sink = loop_of(sql, tmp_path / "b", 3, batch_rows=1_000, handover=handover)
    grids = set()
    while not loop.manifest.finished:
        if loop.manifest.batch % 5 == 4:
            loop.controls.ask(Request(Scale(2 + loop.manifest.batch % 6)))
        loop.step()
        compacted(loop)
        stored = loop.manifest.operators.get("join/grids", ())
        assert len(stored) <= 2, "the newest counts, and the one before it may not be gone yet"
        grids |= {segment.name for segment in stored}
    loop.close()
    assert len(grids) > 2
    assert sink.table().equals(expected.table())
    counted = [one.manifest.counters["comparisons"] for one in (loop, whole)]
    assert counted[0] == counted[1]


def test_map_tasks_that_run_ahead_place_tuples_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have the state of before the batch that runs; which of the two must not matter."""
    monkeypatch.setattr(survey, "BETTER", 1.0)
    monkeypatch.setattr(survey, "UNEVEN", 1.0)
    sql = query(tmp_path, "one value")
    whole, expected = loop_of(sql, tmp_path / "a", 1)
    whole.run()
    deal, states, stale = StreamJoin.deal, dict[int, Any](), [0]

    def ahead(self: StreamJoin, work: MapWork, tuples: pa.Table) -> list[Share]:
        states[work.batch] = work.state
        shares = deal(self, work, tuples)
        before = states.get(work.batch - 1)
        if before is None:
            return shares
        stale[0] += before.get("grids") != work.state.get("grids")
        early = deal(replace(self, before=(0, 0)), replace(work, state=before), tuples)
        assert buckets_of(early) == buckets_of(shares)
        return early if work.batch % 2 else shares

    monkeypatch.setattr(StreamJoin, "deal", ahead)
    loop, sink = loop_of(sql, tmp_path / "b", 4, batch_rows=500)
    while not loop.manifest.finished:
        loop.step()
        compacted(loop)
    loop.close()
    assert stale[0] > 5
    assert sink.table().equals(expected.table())


def buckets_of(shares: Sequence[Share]) -> dict[int, int]:
    """The bucket of each tuple, by its number."""
    tuples = [share.rows for share in shares if not share.channel]
    pairs = [(t.column("seq").to_pylist(), t.column("bucket").to_pylist()) for t in tuples]
    return {number: bucket for numbers, found in pairs for number, bucket in zip(numbers, found)}
