"""Batches that run again from what is recorded: the same rows, whatever the clock or people did."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tidegate as tg
from tests.driver.scene import compacted, drain, moment
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.elastic.share import ShareRequest
from tidegate.errors import OptionError
from tidegate.query.output import Output
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.script import streams_of
from tidegate.session.verification.rerun import RecordedRun
from tidegate.session.verification.verify import verified
from tidegate.sink.folder.files import FileSink
from tidegate.sink.folder.written_rows import EventSpan
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.testing.clock import ManualClock

KEEP_US = 3_600_000_000


class Rows:
    """A query over files that grow, followed on a clock of the test's own."""

    def __init__(self, folder: Path, sql: str, files: Sequence[str], **options: Any) -> None:
        self.folder, self.sql, self.clock = folder, sql, ManualClock(1_000.0)
        self.options = {"follow": True, "keep_us": KEEP_US, "buckets": 8, **options}
        for name in files:
            (folder / name).write_text("ts,k,v\n")
        self.loop = self.begun()

    def outputs(self) -> Sequence[Output]:
        script = read_script(self.sql.replace("{folder}", str(self.folder)))
        return bind(script, streams_of(script))

    def begun(self) -> Loop:
        place = Place("none")
        sinks = {None: FileSink(self.folder / "out")}
        options, checkpoint = RunOptions(**self.options), str(self.folder / "ck")
        plan = plan_for(self.outputs(), place)
        return prepare(plan, place, sinks, options, checkpoint, clock=self.clock)

    def add(self, name: str, *rows: tuple[float, str, int]) -> None:
        with (self.folder / name).open("a") as file:
            file.writelines(f"{moment(t)},{k},{v}\n" for t, k, v in rows)

    def restart(self) -> None:
        self.loop.close()
        self.loop = self.begun()

    def verified(self, **options: Any) -> dict[str, Any]:
        return verified(str(self.folder / "ck"), self.outputs(), EventSpan(), **options)


IDLE = """
CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT)
FROM '{folder}/a.csv', '{folder}/b.csv' TIME ts DISORDER 1 SECOND IDLE 10 SECONDS;
SELECT k, SUM(v) AS v, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k;
"""


@pytest.mark.parametrize("seed", range(4))
def test_a_query_whose_sources_fell_silent_is_verified(seed: int, tmp_path: Path) -> None:
    """Who was silent when is in the manifests: as the frontier of each batch."""
    chance = random.Random(f"idle {seed}")
    run, last = Rows(tmp_path, IDLE, ("a.csv", "b.csv")), {"a.csv": 0.0, "b.csv": 0.0}
    for _ in range(30):
        name = chance.choice(("a.csv", "a.csv", "b.csv"))
        for _ in range(chance.randrange(4)):
            last[name] += chance.random() * 4
            run.add(name, (last[name], chance.choice("xyz"), chance.randrange(9)))
        run.clock.advance(chance.choice((1, 1, 15)))
        run.loop.step()
        if chance.random() < 0.15:
            run.restart()
    drain(run.loop)
    late = run.loop.manifest.counters["rows_late"]
    batches = run.loop.manifest.batch
    run.loop.close()
    found = run.verified()
    assert found["equal"], found
    assert found["batches"] == {"first": 0, "last": batches}
    assert late > 0  # the silence has decided something


def test_without_its_record_such_a_query_gives_other_rows(tmp_path: Path) -> None:
    """Only the newest batch is there then, and verify says so."""
    run = Rows(tmp_path, IDLE, ("a.csv", "b.csv"), keep_us=None)
    for second in range(0, 60, 3):
        run.add("a.csv", (second, "x", second))
        if second == 30:
            run.add("b.csv", (2, "x", 100), (31, "y", 100))
        run.clock.advance(5)
        run.loop.step()
    drain(run.loop)
    manifest = run.loop.manifest
    assert manifest.counters["rows_late"] == 1
    run.loop.close()
    found = run.verified()
    assert (found["equal"], found["batches"]["first"]) == (True, manifest.batch)
    plain = Rows.outputs(run)
    record = RecordedRun(str(tmp_path / "ck"))
    sinks = {None: FileSink(tmp_path / "plain")}
    options = RunOptions(available_now=True)
    loop = prepare(plan_for(plain, Place("none")), Place("none"), sinks, options)
    loop.run()
    assert loop.manifest.digests != record.newest.digests


TABLE = """
CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT) FROM '{folder}/a.csv' TIME ts;
CREATE TABLE t FROM '{folder}/t.csv' REFRESH EVERY 1 MINUTE;
SELECT t.name, SUM(s.v) AS v FROM s [RANGE 5 SECONDS] JOIN t ON s.k = t.k GROUP BY t.name;
"""


def test_a_table_that_was_read_again_is_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("k,name\nx,first\ny,other\n")
    run = Rows(tmp_path, TABLE, ("a.csv",))
    for second in range(30):
        run.add("a.csv", (second, "xy"[second % 2], second))
        if second in (9, 19):
            (tmp_path / "t.csv").write_text(f"k,name\nx,name {second}\ny,other\n")
            run.clock.advance(90)
        if second == 15:
            run.restart()
        run.loop.step()
    drain(run.loop)
    assert len(run.loop.manifest.tables["t"]) == 3
    run.loop.close()
    (tmp_path / "t.csv").write_text("k,name\nx,now\ny,gone\n")
    found = run.verified()
    assert found["equal"], found
    assert found["batches"]["first"] == 0


SHED = """
CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT) FROM '{folder}/a.csv' TIME ts;
SELECT k, SUM(v) AS v, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k
WITH SHED UP TO 95 PERCENT BY UNIFORM;
"""


def test_shares_that_a_person_asked_for_are_verified(tmp_path: Path) -> None:
    run = Rows(tmp_path, SHED, ("a.csv",))
    for second in range(30):
        run.add("a.csv", *((second + i / 50, "xy"[i % 2], i) for i in range(50)))
        if second in (8, 20):
            run.loop.controls.shed(ShareRequest(0.9 if second == 8 else 0.5))
        run.loop.step()
    drain(run.loop)
    assert len(run.loop.manifest.shedding["changes"]) == 2
    run.loop.close()
    found = run.verified()
    assert (found["equal"], found["batches"]["first"]) == (True, 0)


COUNTS = """
CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT) FROM '{folder}/a.csv' TIME ts;
SELECT k, SUM(v) AS v FROM s [RANGE 5 SECONDS] GROUP BY k HAVING SUM(v) > 1;
"""


def test_a_query_that_changed_is_verified_from_its_change_on(tmp_path: Path) -> None:
    run = Rows(tmp_path, COUNTS, ("a.csv",))
    for second in range(30):
        run.add("a.csv", (second, "x", 2))
        if second == 12:
            run.sql = COUNTS.replace("> 1", "> 3")
            run.restart()
        run.loop.step()
    drain(run.loop)
    last, (change,) = run.loop.manifest.batch, run.loop.manifest.changes
    run.loop.close()
    found = run.verified()
    assert (found["equal"], found["batches"]) == (True, {"first": change["batch"], "last": last})
    run.sql = COUNTS
    assert run.verified()["changed"] == ["code"]


JOINED = """
CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT) FROM '{folder}/a.csv' TIME ts;
CREATE STREAM o (ts TIMESTAMP, k STRING, v BIGINT) FROM '{folder}/b.csv' TIME ts;
CREATE STREAM pairs AS
SELECT s.k, s.v, o.v AS w FROM s [RANGE 20 SECONDS] JOIN o [RANGE 20 SECONDS] ON s.k = o.k;
SELECT k, SUM(v * w) AS vw, COUNT(*) AS n FROM pairs [ROWS 7 SLIDE 3] GROUP BY k;
"""


def test_states_that_were_compacted_meanwhile_are_whole(tmp_path: Path) -> None:
    """Rewriting and purging go on, and so do switches; the states of all batches stay."""
    run = Rows(tmp_path, JOINED, ("a.csv", "b.csv"), instances=2, switches={20: 3, 50: 1})
    for second in range(90):
        run.add("a.csv", *((second + i / 9, "xyz"[i % 3], i) for i in range(9)))
        run.add("b.csv", (second, "xyz"[second % 3], second))
        run.loop.step()
        compacted(run.loop)
    run.loop.close()
    named = {
        s.name for m in RecordedRun(str(tmp_path / "ck")).past.course(0, 89) for s in m.segments()
    }
    assert any("compact" in name for name in named)
    found = run.verified(retained=True)
    assert found["equal"], found
    assert found["batches"]["first"] == 0
    again = verified(str(tmp_path / "ck"), run.outputs(), EventSpan())
    assert again["equal"], again


FACTOR = [2.0]
THREADS: list[int] = []


@tg.function(returns="DOUBLE")
def scaled(v: pa.Array) -> pa.Array:
    THREADS.append(threading.get_ident())
    return pc.multiply(v, FACTOR[0])


class Runs(tg.Process):
    """How many tuples came before each, by key."""

    output: ClassVar = {"k": "string", "before": "bigint"}
    threads: ClassVar[list[int]] = []

    def __init__(self) -> None:
        self.counts = self.state.map("counts", ttl="1 hour")

    def on_tuple(self, tuple: Any, keys: Sequence[str | None]) -> Iterator[dict[str, Any]]:
        self.threads.append(threading.get_ident())
        before = self.counts.get(str(tuple.k), 0)
        self.counts[str(tuple.k)] = before + 1
        yield {"k": tuple.k, "before": before}


def test_code_of_the_user_runs_in_the_thread_that_asks(tmp_path: Path) -> None:
    """So that a breakpoint in it is hit; and what it does otherwise now is told by its rows."""
    lines = [f"{moment(i)},{'xy'[i % 2]},{i}\n" for i in range(40)]
    (tmp_path / "a.csv").write_text("ts,k,v\n" + "".join(lines))
    session = tg.Session(master="none")
    s = session.stream(str(tmp_path / "a.csv"), time="ts")
    streams = {"scaled": s.select("k", v=scaled("v")), "runs": s.process(Runs, keys="k")}
    checkpoint = tmp_path / "ck"
    session.start(
        streams,
        sinks={name: str(tmp_path / "out" / name) for name in streams},
        checkpoint=checkpoint,
        batch_rows=8,
        keep="1 hour",
    ).wait()
    THREADS.clear()
    Runs.threads.clear()
    found = session.replay(checkpoint, streams, batch=3, out=tmp_path / "again")
    assert found["equal"], found
    assert {name: of["rows"] for name, of in found["outputs"].items()} == {"runs": 8, "scaled": 8}
    assert set(THREADS) == set(Runs.threads) == {threading.get_ident()}
    assert sorted(p.name for p in (tmp_path / "again").iterdir())[-2:] == ["runs", "scaled"]
    FACTOR[0] = 3.0
    try:
        found = session.replay(checkpoint, streams, batch=3)
    finally:
        FACTOR[0] = 2.0
    assert (found["equal"], found["outputs"]["runs"]["again"]) == (False, True)
    difference = found["outputs"]["scaled"]["difference"]
    first = found["outputs"]["scaled"]["rows_recorded"]
    assert (difference["row"], first) == (23, 8)
    assert (difference["recorded"]["v"], difference["now"]["v"]) == ("46", "69")


def test_a_program_verifies_its_query(tmp_path: Path) -> None:
    """Over rows of its own, with a function of its own, and a join with its own buckets."""
    rows = [{"ts": moment(i), "k": "xy"[i % 2], "v": float(i)} for i in range(40)]
    session = tg.Session(master="none")
    s = session.stream(rows, time="ts")
    left, right = tg.left, tg.right
    pairs = s.join(s, within="1 second", on=left.k == right.k).select(v=left.v, w=right.v)
    streams = {"scaled": s.select("k", v=scaled("v")), "pairs": pairs}
    checkpoint = tmp_path / "ck"
    session.start(
        streams,
        sinks={name: f"{tmp_path}/out/{name}?format=csv" for name in streams},
        checkpoint=checkpoint,
        batch_rows=8,
        buckets=16,
    ).wait()
    assert session.verify(checkpoint, streams)["equal"]
    found = session.verify(checkpoint, streams, from_=moment(10), to=datetime(1970, 1, 1, 0, 0, 19))
    assert found["equal"], found
    assert found["outputs"]["scaled"]["compared"] == 10
    other = {**streams, "scaled": s.select("k", v=scaled("v") + 1)}
    found = session.verify(checkpoint, other)
    assert (found["equal"], found["changed"]) == (False, ["code"])
    assert found["outputs"]["scaled"]["difference"]["row"] == 0
    assert found["outputs"]["pairs"]["difference"] is None
    with pytest.raises(OptionError, match="verify: needs a time, or microseconds"):
        session.verify(checkpoint, streams, to="soon")
