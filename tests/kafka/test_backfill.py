"""A history in files or a table, then a topic: one stream without a gap or a double."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import TopicPartition
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tools.kafka import Broker

import tidegate as tg
from tests.kafka.history import (
    SQL,
    fill,
    in_time,
    more,
    read,
    records,
    table,
    write_delta,
    write_files,
)
from tests.kafka.topic import START, until
from tests.oracle.backfill import Record, by_offset, by_time
from tests.sink.lake.place import KINDS
from tests.source.lake.test_lake_source import make
from tidegate.errors import OptionError, SourceError

Write = Callable[[Path, Sequence[Sequence[Record]]], str]

_names = itertools.count()


@pytest.fixture
def session() -> tg.Session:
    return tg.Session(master="none")


@pytest.mark.parametrize("write", [write_files, write_delta])
def test_a_topic_goes_on_after_the_offsets_of_its_history(
    broker: Broker, topic: str, session: tg.Session, tmp_path: Path, write: Write
) -> None:
    every = records(range(300), 3)
    fill(broker, topic, every)
    early = [every[0][:40], in_time(every[0][40:70] + every[1][:20])]
    history = write(tmp_path / "hist", early)
    stream = session.stream(history, then=f"kafka://{broker.address}/{topic}?from=history")
    found = read(session.sql(SQL, r=stream).to_arrow().to_pylist())
    assert found == by_offset(early, every)
    assert sorted(r.v for r in found) == list(range(300))


@pytest.mark.parametrize("write", [write_files, write_delta])
def test_a_time_parts_history_and_topic(
    broker: Broker, topic: str, session: tg.Session, tmp_path: Path, write: Write
) -> None:
    every = records(range(300), 2)
    fill(broker, topic, every)
    early = [in_time(every[0][:60] + every[1][:60]), in_time(every[0][60:90] + every[1][60:80])]
    history, at = write(tmp_path / "hist", early), START + timedelta(seconds=150)
    text = (
        f"CREATE STREAM r FROM '{history}' THEN 'kafka://{broker.address}/{topic}' "
        f"UNTIL '{at.isoformat()}' TIME ts; {SQL}"
    )
    sink = tg.sink.memory()
    summary = session.sql(text).start(sink=sink, batch_rows=37).wait(60)
    found = read(sink.table().to_pylist())
    assert found == by_time(early, every, at)
    assert sorted(r.v for r in found) == list(range(300))
    beyond = [r for file in early for r in file if r.ts >= at]
    assert summary.counters["rows_outside"] == len(beyond) + 150
    assert len(beyond) > 0
    assert summary.counters["rows_in"] == 300
    assert summary.counters["rows_late"] == 0


def after(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


def remove(broker: Broker, topic: str, partition: int, below: int) -> None:
    """Let a partition lose its oldest records, as retention does."""
    admin = broker.admin()
    [asked] = admin.delete_records([TopicPartition(topic, partition, below)]).values()
    asked.result(30)


COUNTS = "SELECT COUNT(*) AS n, SUM(v) AS s FROM r [RANGE 5 SECONDS]"


def counts(rows: Sequence[dict[str, Any]]) -> list[tuple[datetime, int, int]]:
    return [(row["window_start"], row["n"], row["s"]) for row in rows]


def plain_counts(rows: Sequence[Record]) -> list[tuple[datetime, int, int]]:
    """What COUNTS gives for rows."""
    found: dict[datetime, list[int]] = {}
    for row in rows:
        found.setdefault(after(int((row.ts - START).total_seconds()) // 5 * 5), []).append(row.v)
    return [(start, len(values), sum(values)) for start, values in sorted(found.items())]


@st.composite
def seams(draw: st.DrawFn) -> tuple[dict[int, list[Record]], list[list[Record]]]:
    """The records of a topic, and files with the first ones of each partition."""
    steps = draw(st.lists(st.integers(0, 3), min_size=1, max_size=60))
    partitions = draw(st.integers(1, 3))
    every: dict[int, list[Record]] = {p: [] for p in range(partitions)}
    for v, seconds in enumerate(itertools.accumulate(steps)):
        own = every[draw(st.integers(0, partitions - 1))]
        own.append(Record(after(seconds), v, 0, len(own)))
    every = {p: [r._replace(partition=p) for r in own] for p, own in every.items()}
    files: list[list[Record]] = [[] for _ in range(draw(st.integers(1, 3)))]
    for own in every.values():
        for row in own[: draw(st.integers(0, len(own)))]:
            files[draw(st.integers(0, len(files) - 1))].append(row)
    return every, [in_time(rows) for rows in files]


@settings(
    max_examples=max(settings().max_examples // 8, 10),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    seam=seams(),
    seconds=st.none() | st.integers(0, 60),
    batch_rows=st.sampled_from([1, 3, 10, 1000]),
    instances=st.sampled_from([1, 3]),
    switch=st.integers(1, 4),
    as_table=st.booleans(),
    windows=st.booleans(),
)
def test_rows_and_their_order_are_those_of_the_plain_union(
    broker: Broker,
    session: tg.Session,
    tmp_path: Path,
    seam: tuple[dict[int, list[Record]], list[list[Record]]],
    seconds: int | None,
    batch_rows: int,
    instances: int,
    switch: int,
    as_table: bool,
    windows: bool,
) -> None:
    every, files = seam
    name = f"seam-{next(_names)}"
    fill(broker, name, every)
    write = write_delta if as_table else write_files
    history, place = write(tmp_path / name, files), f"kafka://{broker.address}/{name}"
    if seconds is None:
        stream = session.stream(history, then=f"{place}?from=history")
    else:
        stream = session.stream(history, then=place, until=after(seconds))
    sink = tg.sink.memory()
    query = session.sql(COUNTS if windows else SQL, r=stream).start(
        sink=sink, batch_rows=batch_rows, instances=instances, switches={switch: 2}
    )
    summary = query.wait(60)
    plain = by_offset(files, every) if seconds is None else by_time(files, every, after(seconds))
    found = sink.table().to_pylist() if plain else []
    assert counts(found) == plain_counts(plain) if windows else read(found) == plain
    assert summary.counters["rows_in"] == len(plain)
    assert summary.counters["rows_late"] == 0


def test_a_history_is_answered_before_the_topic_has_a_record(
    broker: Broker, topic: str, session: tg.Session, tmp_path: Path
) -> None:
    every = records(range(200), 2)
    fill(broker, topic, {0: [], 1: []})
    history = write_files(tmp_path / "hist", [in_time(every[0] + every[1])])
    stream = session.stream(history, then=f"kafka://{broker.address}/{topic}", until=after(150))
    sink = tg.sink.memory()
    query = session.sql(SQL, r=stream).start(sink=sink, follow=True)
    until(lambda: query.status().get("rows_out", 0) == 150, query)
    late = [Record(after(s), -s, s % 2, s // 2 - 70) for s in range(140, 220)]
    more(broker, topic, late)
    until(lambda: query.status().get("rows_out", 0) == 150 + 68, query)
    query.stop()
    topic_rows = {0: late[::2], 1: late[1::2]}
    plain = by_time([in_time(every[0] + every[1])], topic_rows, after(150))
    assert read(sink.table().to_pylist()) == plain[: 150 + 68]


def test_a_partition_goes_on_as_one_source_with_its_history(
    broker: Broker, topic: str, session: tg.Session, tmp_path: Path
) -> None:
    """A row that is late after the rows before it is late, wherever these were read."""
    own = [Record(after(s), s, 0, place) for place, s in enumerate([0, 5, 10, 8, 7, 11])]
    fill(broker, topic, {0: own})
    history = write_files(tmp_path / "hist", [own[:3]])
    place = f"kafka://{broker.address}/{topic}?from=history"
    stream = session.stream(history, then=place, disorder="2 seconds")
    sink = tg.sink.memory()
    summary = session.sql(SQL, r=stream).start(sink=sink).wait(60)
    assert [r.v for r in read(sink.table().to_pylist())] == [0, 5, 8, 10, 11]
    assert summary.counters["rows_late"] == 1


def test_offsets_may_be_written(
    broker: Broker, topic: str, session: tg.Session, tmp_path: Path
) -> None:
    every = records(range(100), 2)
    fill(broker, topic, every)
    early = [in_time(every[0][:30] + every[1][:20])]
    history = write_files(tmp_path / "hist", early)
    place = f"kafka://{broker.address}/{topic}"
    stream = session.stream(history, then=f"{place}?from=0:30,1:20")
    assert read(session.sql(SQL, r=stream).to_arrow().to_pylist()) == by_offset(early, every)
    alone = session.stream(f"{place}?from=1:45,0:50&meta=partition,offset", name="r")
    assert read(session.sql(SQL, r=alone).to_arrow().to_pylist()) == every[1][45:]
    with pytest.raises(SourceError, match=re.escape("for each of the 2 partitions; got 0:30.")):
        session.stream(history, then=f"{place}?from=0:30")
    with pytest.raises(SourceError, match="which has 0 to 50; got 51"):
        session.stream(history, then=f"{place}?from=0:51,1:20")


class Stop(Exception):
    """The end of a run that was to end there."""


def stopped_after(batch: int) -> Callable[[str, int], None]:
    def seen(step: str, number: int) -> None:
        if (step, number) == ("after publish", batch):
            raise Stop

    return seen


@pytest.mark.parametrize("write", [write_files, write_delta])
@pytest.mark.parametrize("parted_by", ["offset", "time"])
def test_a_restart_reads_the_history_of_the_first_run(
    broker: Broker, topic: str, session: tg.Session, tmp_path: Path, write: Write, parted_by: str
) -> None:
    every = records(range(200), 2)
    fill(broker, topic, every)
    early = [every[0][:30], every[1][:40], in_time(every[0][30:50] + every[1][40:50])]
    history, place = write(tmp_path / "hist", early), f"kafka://{broker.address}/{topic}"
    if parted_by == "offset":
        stream = session.stream(history, then=f"{place}?from=history", name="r")
        plain = by_offset(early, every)
    else:
        stream = session.stream(history, then=place, until=after(70), name="r")
        plain = by_time(early, every, after(70))
    sink, options = tg.sink.memory(), {"checkpoint": str(tmp_path / "c"), "batch_rows": 20}
    rows = session.sql(SQL, r=stream)
    with pytest.raises(Stop):
        rows.start(sink=sink, observer=stopped_after(1), **options).wait(60)
    # More rows of the topic come to the history: for this stream the topic has them.
    if write is write_files:
        pq.write_table(table(every[0][50:]), tmp_path / "hist" / "000b.parquet")
    else:
        write_delta(tmp_path / "hist", [every[0][50:]])
        DeltaTable(str(tmp_path / "hist")).delete("v = 0")
    with pytest.raises(Stop):
        rows.start(sink=sink, observer=stopped_after(4), **options).wait(60)
    rows.start(sink=sink, **options).wait(60)
    assert read(sink.table().to_pylist()) == plain


def test_a_history_that_was_changed_is_refused(
    broker: Broker, topic: str, session: tg.Session, tmp_path: Path
) -> None:
    every = records(range(100), 1)
    fill(broker, topic, every)
    history = write_files(tmp_path / "hist", [every[0][:30], every[0][30:60]])
    place = f"kafka://{broker.address}/{topic}"
    options = {"checkpoint": str(tmp_path / "c"), "batch_rows": 10}
    rows = session.sql(SQL, r=session.stream(history, then=f"{place}?from=history", name="r"))
    with pytest.raises(Stop):
        rows.start(sink=tg.sink.memory(), observer=stopped_after(0), **options).wait(60)
    other = session.sql(SQL, r=session.stream(history, then=place, until=after(50), name="r"))
    with pytest.raises(SourceError, match="was read without UNTIL by this checkpoint"):
        other.start(sink=tg.sink.memory(), **options).wait(60)
    alone = session.sql(SQL, r=session.stream(f"{place}?meta=partition,offset", name="r"))
    with pytest.raises(SourceError, match="by this checkpoint and must be there"):
        alone.start(sink=tg.sink.memory(), **options).wait(60)
    pq.write_table(table(every[0][30:90]), tmp_path / "hist" / "001.parquet")
    with pytest.raises(SourceError, match="must be as it was when the first run began"):
        rows.start(sink=tg.sink.memory(), **options).wait(60)


def test_records_that_are_missing_between_the_two_are_refused(
    broker: Broker, topic: str, session: tg.Session, tmp_path: Path
) -> None:
    every = records(range(100), 2)
    fill(broker, topic, every)
    remove(broker, topic, 0, 20)
    place = f"kafka://{broker.address}/{topic}"

    def run(files: Sequence[Sequence[Record]], then: str, **more: Any) -> list[Record]:
        history = write_files(tmp_path / f"hist-{next(_names)}", files)
        stream = session.stream(history, then=f"{place}{then}", name="r", **more)
        return read(session.sql(SQL, r=stream).to_arrow().to_pylist())

    with pytest.raises(SourceError, match="must go on with offset 19, where the history ends"):
        run([every[0][:19], every[1]], "?from=history")
    with pytest.raises(SourceError, match="must have the records up to offset 50"):
        run([every[0], [Record(after(100), 1, 1, 50)]], "?from=history")
    enough = [every[0][:20], every[1][:1]]
    assert run(enough, "?from=history") == by_offset(enough, every)
    with pytest.raises(SourceError, match="must have a record of before UNTIL"):
        run([in_time(every[0][:20] + every[1][:20])], "", until=after(40))
    whole = [in_time(every[0][:30] + every[1][:30])]
    assert run(whole, "", until=after(41)) == by_time(whole, every, after(41))


def test_histories_without_offsets_or_with_other_columns_are_told_of(
    broker: Broker,
    topic: str,
    session: tg.Session,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    every = records(range(10), 1)
    fill(broker, topic, every)
    place = f"kafka://{broker.address}/{topic}"
    plain = table(every[0][:5]).drop_columns(["_partition", "_offset"])
    pq.write_table(plain, tmp_path / "plain.parquet")
    with pytest.raises(SourceError, match="from=history needs the columns _partition and _offset"):
        session.stream(tmp_path / "plain.parquet", then=f"{place}?from=history")
    with pytest.raises(SourceError, match="no other columns than the history; got _key"):
        session.stream(tmp_path / "plain.parquet", then=f"{place}?meta=key", until=after(5))
    narrow = table(every[0][:5]).set_column(2, "_partition", pa.array(["0"] * 5))
    pq.write_table(narrow, tmp_path / "narrow.parquet")
    with pytest.raises(SourceError, match="must be BIGINT, as Kafka's records have it; got STRING"):
        session.stream(tmp_path / "narrow.parquet", then=f"{place}?from=history")
    holes = table(every[0][:5]).set_column(3, "_offset", pa.array([0, 1, None, 3, 4], pa.int64()))
    pq.write_table(holes, tmp_path / "holes.parquet")
    stream = session.stream(tmp_path / "holes.parquet", then=f"{place}?from=history", name="r")
    with pytest.raises(SourceError, match="must have a value in each row; got NULL"):
        session.sql(SQL, r=stream).to_arrow()
    pq.write_table(table(every[0][:3] + every[0][4:6]), tmp_path / "gap.parquet")
    stream = session.stream(tmp_path / "gap.parquet", then=f"{place}?from=history", name="r")
    found = read(session.sql(SQL, r=stream).to_arrow().to_pylist())
    assert found == by_offset([every[0][:3] + every[0][4:6]], every)
    said = "the history has 5 rows of partition 0 for the 6 offsets 0 to 5"
    assert [said in record.getMessage() for record in caplog.records] == [True]
    with pytest.raises(OptionError, match="then= needs one history"):
        session.stream([{"ts": START}], then=f"{place}?from=history")
    with pytest.raises(OptionError, match="until= needs then="):
        session.stream(tmp_path / "plain.parquet", until=after(5))


def test_text_files_and_a_topic_take_their_own_options(
    broker: Broker, topic: str, session: tg.Session, tmp_path: Path
) -> None:
    every = records(range(40), 1)
    fill(broker, topic, every)
    lines = ["ts;v;_partition;_offset"]
    lines += [f"{r.ts.isoformat()};{r.v};{r.partition};{r.offset}" for r in every[0][:25]]
    (tmp_path / "hist.csv").write_text("\n".join(lines) + "\n")
    stream = session.stream(
        tmp_path / "hist.csv", then=f"kafka://{broker.address}/{topic}?from=history", sep=";"
    )
    assert read(session.sql(SQL, r=stream).to_arrow().to_pylist()) == every[0]
    assert "backfill: the topic goes on after the last offset" in stream.explain()


def test_a_table_of_iceberg_and_runs_that_take_what_there_is(
    broker: Broker, topic: str, session: tg.Session, tmp_path: Path
) -> None:
    every = records(range(120), 2)
    fill(broker, topic, {p: own[:40] for p, own in every.items()})
    lake = KINDS["iceberg"](tmp_path)
    make(lake, table(in_time(every[0][:20] + every[1][:25])))
    place, lineage = f"kafka://{broker.address}/{topic}", tmp_path / "lineage.jsonl"
    stream = session.stream(lake.uri, then=f"{place}?from=history", name="r")
    sink = tg.sink.memory()
    options = {"available_now": True, "checkpoint": str(tmp_path / "c"), "lineage": lineage}
    rows = session.sql(SQL, r=stream)
    rows.start(sink=sink, **options).wait(60)
    lake.append(table(every[0][20:40]))
    more(broker, topic, [r for own in every.values() for r in own[40:]])
    query = rows.start(sink=sink, **options)
    query.wait(60)
    plain = by_offset([in_time(every[0][:20] + every[1][:25])], every)
    assert read(sink.table().to_pylist()) == plain[:-2]
    first = json.loads(lineage.read_text().splitlines()[0])
    assert [d["name"] for d in first["inputs"]] == ["ns.t", topic]
    with pytest.raises(OptionError, match="a source joins from one place"):
        query.announce("r", f"{lake.uri} THEN {place}?from=history")
