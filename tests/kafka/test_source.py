"""Topics as input: offsets, partitions, where to begin, and what is in records beside values."""

from __future__ import annotations

from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tools.kafka import PASSWORD, USER, Broker

import tidegate as tg
from tests.kafka.topic import SQL, answer, given, send, spread, until, value
from tidegate.cli.main import invoke
from tidegate.errors import OptionError, SourceError


@pytest.fixture
def session() -> tg.Session:
    return tg.Session(master="none")


def uri(broker: Broker, topic: str, parameters: str = "") -> str:
    return f"kafka://{broker.address}/{topic}{parameters}"


def stream(session: tg.Session, place: str, **more: Any) -> Any:
    return session.sql(SQL, r=session.stream(place, time="ts", name="r", **more))


def rows(folder: Path) -> list[dict[str, Any]]:
    """All rows of a folder of results."""
    files = sorted(folder.glob("batch=*/*.parquet"))
    return [row for f in files for row in pq.read_table(f).to_pylist()]


def test_a_topic_is_read_up_to_the_end_it_has(
    broker: Broker, topic: str, session: tg.Session
) -> None:
    broker.create(topic, 3)
    send(broker, topic, spread(range(1000), 3))
    assert given(stream(session, uri(broker, topic)).to_arrow().to_pylist()) == answer(range(1000))


def test_partitions_without_a_leader_are_asked_for_again(
    broker: Broker, topic: str, session: tg.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a topic that was just made: the broker says so, for a moment."""
    broker.create(topic, 3)
    send(broker, topic, spread(range(100), 3))
    refused: list[Future[Any]] = []
    ask = AdminClient.list_offsets

    def without_leader(self: AdminClient, places: Any, **more: Any) -> Any:
        if len(refused) == 2:
            return ask(self, places, **more)
        failed: Future[Any] = Future()
        failed.set_exception(KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)))
        refused.append(failed)
        return dict.fromkeys(places, failed)

    monkeypatch.setattr(AdminClient, "list_offsets", without_leader)
    assert given(stream(session, uri(broker, topic)).to_arrow().to_pylist()) == answer(range(100))
    assert len(refused) == 2


def test_only_committed_records_count_and_markers_are_no_rows(
    broker: Broker, topic: str, tmp_path: Path, session: tg.Session
) -> None:
    broker.create(topic, 2)
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": topic})
    producer.init_transactions(60)
    for first in range(0, 300, 50):
        producer.begin_transaction()
        for n in range(first, first + 50):
            producer.produce(topic, value(n), partition=n % 2)
        if first == 100:
            producer.flush()
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    producer.begin_transaction()
    producer.produce(topic, value(8000), partition=0)
    producer.flush()  # open: everything after it waits
    send(broker, topic, [(0, value(9000)), (1, value(400))])
    kept = [n for n in range(300) if not 100 <= n < 150] + [400]
    query = stream(session, uri(broker, topic)).start(sink=str(tmp_path / "out"))
    summary = query.wait(60)
    assert given(rows(tmp_path / "out")) == answer(kept)
    assert summary.counters["rows_in"] == len(kept)
    seen = stream(session, uri(broker, topic, "?isolation=read_uncommitted")).to_arrow()
    assert given(seen.to_pylist()) == answer([*range(300), 400, 8000, 9000])
    producer.abort_transaction(60)
    producer.close()


def test_where_to_begin(broker: Broker, topic: str, session: tg.Session, tmp_path: Path) -> None:
    broker.create(topic, 2, retention_ms="-1")
    send(broker, topic, spread(range(100), 2), timestamp=1_704_067_200_000)
    send(broker, topic, spread(range(100, 200), 2), timestamp=1_704_070_800_000)
    later = stream(session, uri(broker, topic, "?from=2024-01-01T00:30:00Z")).to_arrow()
    assert given(later.to_pylist()) == answer(range(100, 200))
    beyond = stream(session, uri(broker, topic, "?from=2030-01-01T00:00:00Z")).to_arrow()
    assert beyond.num_rows == 0
    sink = tg.sink.memory()
    newest = stream(session, uri(broker, topic, "?from=latest"))
    query = newest.start(sink=sink, follow=True, checkpoint=str(tmp_path / "c"))
    send(broker, topic, spread(range(1000, 1200), 2))
    until(lambda: query.status().get("rows_in", 0) == 200, query)
    query.stop()
    # A restart goes on where it was, whatever has come since and `from` says.
    send(broker, topic, spread(range(1200, 1400), 2))
    query = newest.start(sink=sink, follow=True, checkpoint=str(tmp_path / "c"))
    until(lambda: query.status().get("rows_in", 0) == 400, query)
    query.stop()
    assert given(sink.table().to_pylist()) == answer(range(1000, 1300))


def test_partitions_that_are_added_join_a_running_query(
    broker: Broker, topic: str, session: tg.Session, tmp_path: Path
) -> None:
    broker.create(topic, 1)
    sink = tg.sink.memory()
    query = stream(session, uri(broker, topic), schema=SCHEMA).start(
        sink=sink, follow=True, checkpoint=str(tmp_path / "c")
    )
    send(broker, topic, [(0, value(n)) for n in range(50)])
    until(lambda: query.status().get("rows_in", 0) == 50, query)
    broker.grow(topic, 3)
    until(lambda: len(query._loop.pipeline.inputs._intake.inlets[0].tracks) == 3, query)
    send(broker, topic, spread(range(50, 350), 3))
    until(lambda: query.status().get("rows_in", 0) == 350, query)
    query.stop()
    broker.grow(topic, 4)  # while nobody reads, from the end or not
    send(broker, topic, spread(range(350, 950), 4))
    again = stream(session, uri(broker, topic, "?from=latest"), schema=SCHEMA)
    query = again.start(sink=sink, follow=True, checkpoint=str(tmp_path / "c"))
    until(lambda: query.status().get("rows_in", 0) == 950, query)
    query.stop()
    assert given(sink.table().to_pylist()) == answer(range(900))


SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("v", pa.int64())])


def test_what_a_record_has_beside_its_value(
    broker: Broker, topic: str, session: tg.Session
) -> None:
    broker.create(topic, 2, retention_ms="-1")
    stamp = 1_704_067_200_123
    send(broker, topic, [(1, b'{"a": 1}')], key="left", timestamp=stamp, headers=[("h", b"x")])
    send(broker, topic, [(1, b'{"a": 2}')], timestamp=stamp + 1)
    place = uri(broker, topic, "?meta=key,partition,offset,headers")
    found = session.stream(place, time="_timestamp").to_arrow().to_pylist()
    at = [datetime(2024, 1, 1, 0, 0, 0, micros, UTC) for micros in (123_000, 124_000)]
    assert list(found[0]) == ["ts", "a", "_key", "_partition", "_offset", "_timestamp", "_headers"]
    assert [tuple(row.values()) for row in found] == [
        (at[0], 1, "left", 1, 0, at[0], [{"name": "h", "value": "x"}]),
        (at[1], 2, None, 1, 1, at[1], []),
    ]


def test_tombstones_and_poison_are_rejected_with_partition_and_offset(
    broker: Broker, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.create(topic, 2)
    bad = [(1, None), (1, b"no json"), (1, b'{"ts": "never", "k": "a", "v": 1}')]
    send(broker, topic, [*spread(range(200), 2), *bad, (1, value(201)), (0, value(200))])
    query = tmp_path / "q.sql"
    query.write_text(SQL)
    place = ["--stream", f"r={uri(broker, topic)}", "--out", str(tmp_path / "out")]
    code = invoke(["run", str(query), "--master", "none", *place])
    said = capsys.readouterr().err
    assert code == 0, said
    assert f"in {topic}/1: partition 1, offset 100: a tombstone, which has no value" in said
    assert given(rows(tmp_path / "out")) == answer(range(202))
    [file] = (tmp_path / "out" / "_rejected").glob("*/*")
    found = pq.read_table(file).to_pylist()
    assert {r["_source"] for r in found} == {f"{topic}/1"}
    assert [r["_seq"] for r in found] == [100, 101, 102]
    assert found[1]["_raw"] == "no json"


def test_progress_is_told_to_a_consumer_group_and_never_read(
    broker: Broker, topic: str, session: tg.Session, tmp_path: Path
) -> None:
    broker.create(topic, 2)
    send(broker, topic, spread(range(100), 2))
    watcher = Consumer({"bootstrap.servers": broker.address, "group.id": topic})
    places = [TopicPartition(topic, p) for p in range(2)]

    def told() -> list[int]:
        return [p.offset for p in watcher.committed(places, timeout=30)]

    counted = stream(session, uri(broker, topic, f"?group={topic}"))
    query = counted.start(sink=tg.sink.memory(), follow=True, checkpoint=str(tmp_path / "c"))
    until(lambda: told() == [50, 50], query)
    query.stop()
    watcher.commit(offsets=[TopicPartition(topic, p, 7) for p in range(2)], asynchronous=False)
    send(broker, topic, spread(range(100, 120), 2))
    query = counted.start(sink=tg.sink.memory(), follow=True, checkpoint=str(tmp_path / "c"))
    until(lambda: told() == [60, 60], query)
    assert query.status()["rows_in"] == 120
    query.stop()
    watcher.close()


def test_available_now_leaves_windows_open(
    broker: Broker, topic: str, session: tg.Session, tmp_path: Path
) -> None:
    broker.create(topic, 2)
    sink = tg.sink.memory()
    for first, last in ((0, 250), (250, 500)):
        send(broker, topic, spread(range(first, last), 2))
        query = stream(session, uri(broker, topic)).start(
            sink=sink, available_now=True, checkpoint=str(tmp_path / "c")
        )
        query.wait(60)
    assert given(sink.table().to_pylist()) == answer(range(400))


def test_records_that_retention_removed_are_an_error_that_names_them(
    broker: Broker, topic: str, session: tg.Session, tmp_path: Path
) -> None:
    broker.create(topic, 2)
    send(broker, topic, spread(range(200), 2))
    counted = stream(session, uri(broker, topic))
    options = {"follow": True, "checkpoint": str(tmp_path / "c")}
    query = counted.start(sink=tg.sink.memory(), **options)
    until(lambda: query.status().get("rows_in", 0) == 200, query)
    query.stop()
    send(broker, topic, spread(range(200, 600), 2))
    admin = broker.admin()
    [asked] = admin.delete_records([TopicPartition(topic, 1, 150)]).values()
    asked.result(30)
    with pytest.raises(SourceError) as caught:
        counted.start(sink=tg.sink.memory(), **options).wait(60)
    said = str(caught.value)
    assert said.startswith(f"topic {topic}, partition 1: offsets from 100 on are needed")
    assert "the first that is there is 150" in said
    # Another topic of the same name is another one, however many records it has.
    make_anew(broker, topic)
    send(broker, topic, spread(range(600), 2))
    with pytest.raises(SourceError, match="one of the same name that was made later"):
        counted.start(sink=tg.sink.memory(), **options).wait(60)


def test_a_topic_made_anew_is_read_anew(broker: Broker, topic: str, session: tg.Session) -> None:
    broker.create(topic, 2)
    send(broker, topic, spread(range(200), 2))
    counted = stream(session, uri(broker, topic))
    assert given(counted.to_arrow().to_pylist()) == answer(range(200))
    make_anew(broker, topic)
    send(broker, topic, spread(range(1000, 1200), 2))
    assert given(counted.to_arrow().to_pylist()) == answer(range(1000, 1200))


def make_anew(broker: Broker, topic: str) -> None:
    """Remove a topic, and make another one with its name."""
    admin = broker.admin()
    [asked] = admin.delete_topics([topic]).values()
    asked.result(30)
    until(lambda: topic not in admin.list_topics(timeout=30).topics)
    broker.create(topic, 2)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("?from=yesterday", "from must be earliest, latest, a time or offsets; got yesterday"),
        ("?isolation=none", "isolation must be read_committed or read_uncommitted; got none"),
        ("?meta=key,ofset", "meta must name what a record has beside its value; got ofset"),
        ("?form=latest", "got parameter form. Did you mean from?"),
    ],
)
def test_wrong_parameters_are_refused(
    broker: Broker, topic: str, session: tg.Session, parameters: str, words: str
) -> None:
    broker.create(topic)
    send(broker, topic, [(0, value(1))])
    with pytest.raises((SourceError, OptionError)) as caught:
        session.stream(uri(broker, topic, parameters), time="ts").to_arrow()
    assert words in str(caught.value)


def test_what_cannot_be_read_is_refused(broker: Broker, topic: str, session: tg.Session) -> None:
    with pytest.raises(SourceError, match="the topic must be there; got nowhere"):
        session.stream(uri(broker, "nowhere"), time="ts").to_arrow()
    broker.create(topic)
    with pytest.raises(SourceError, match="a value must be there to tell the columns from"):
        session.stream(uri(broker, topic), time="ts").to_arrow()


def test_a_secret_is_in_no_file_and_no_word(
    broker: Broker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    broker.create(topic, 2)
    send(broker, topic, spread(range(200), 2))
    config = tmp_path / "kafka.properties"
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    settings |= {"sasl.username": USER, "sasl.password": PASSWORD}
    config.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
    query = tmp_path / "q.sql"
    query.write_text(SQL)
    place = f"kafka://{broker.sasl_address}/{topic}?config={config}"
    folder = tmp_path / "kept"
    common = [str(query), "--stream", f"r={place}"]
    assert invoke(["explain", *common]) == 0
    kept = ["--out", str(folder / "out"), "--checkpoint", str(folder / "c")]
    assert invoke(["run", *common, "--master", "none", "--log", "debug", *kept]) == 0
    assert invoke(["state", str(folder / "c")]) == 0
    told = capsys.readouterr()
    assert given(rows(folder / "out")) == answer(range(200))
    config.write_text(config.read_text().replace(PASSWORD, f"not-{PASSWORD}"))
    monkeypatch.setattr("tidegate.source.kafka.topic.ANSWER_S", 3.0)
    assert invoke(["run", *common, "--master", "none"]) == 2
    refused = capsys.readouterr()
    assert "must answer; got" in refused.err
    said = told.out + told.err + refused.out + refused.err
    files = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    kinds = {p.relative_to(folder).parts[:2] for p in files}
    kept = {("c", name) for name in ("journal", "lock", "manifest", "meta.json", "script")}
    assert kinds == kept | {("out", "_ledger"), ("out", "batch=00000000")}
    assert PASSWORD not in said
    assert not [p for p, data in files.items() if PASSWORD.encode() in data]


def test_why_says_the_partition_and_the_offset_of_a_record(
    broker: Broker, topic: str, session: tg.Session, tmp_path: Path
) -> None:
    broker.create(topic, 3)
    send(broker, topic, spread(range(300), 3))
    query = stream(session, uri(broker, topic)).start(
        sink=str(tmp_path / "out"), checkpoint=str(tmp_path / "ckpt")
    )
    query.wait()
    facts = query.why("k = 'k1'")  # of the first window: every third of a hundred
    places = [(each["topic"], each["partition"], each["offset"]) for each in facts["tuples"]]
    assert places == [(topic, n % 3, n // 3) for n in range(1, 100, 3)]
    assert facts["again"] == {"equal": True, "tuples": 33, "rows": 1}
