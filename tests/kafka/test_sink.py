"""What a sink writes to a topic, and what it refuses before anything is written."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tools.kafka import Broker

import tidegate as tg
from tests.docs.block import blocks
from tests.kafka.output import TopicOutput, meant
from tests.kafka.reading import committed, in_order, rows_in
from tests.sink.output import rows
from tidegate.cli.main import invoke
from tidegate.errors import OptionError, SinkError, UnavailableError
from tidegate.sink.folder.batch_ledger import PublishedSink
from tidegate.sink.kafka.sink import KafkaSink
from tidegate.sink.registry import of

START = datetime(2024, 1, 1, tzinfo=UTC)


def rides(count: int = 120) -> list[dict[str, Any]]:
    """Two in a second on the routes 0 to 4; each tenth is a minute late."""
    return [
        {
            "at": START + timedelta(seconds=i // 2 - (60 if i % 10 == 9 else 0)),
            "route": f"r{i % 5}",
            "fare": i / 4,
        }
        for i in range(count)
    ]


def stream(rows: list[dict[str, Any]], name: str = "rides") -> tg.Stream:
    source = tg.MemorySource(rows, time="at")
    source.end()
    return tg.Session(master="none").stream(source, time="at", name=name)


def counts(rows: list[dict[str, Any]]) -> tg.Stream:
    return (
        stream(rows).window("10 seconds").group_by("route").agg(n=tg.count(), total=tg.sum("fare"))
    )


def murmur2(data: bytes) -> int:
    """The hash of Java's clients, byte by byte."""
    word = 2**32 - 1
    found = (0x9747B28C ^ len(data)) & word
    for at in range(0, len(data) - len(data) % 4, 4):
        k = int.from_bytes(data[at : at + 4], "little") * 0x5BD1E995 & word
        k = (k ^ k >> 24) * 0x5BD1E995 & word
        found = (found * 0x5BD1E995 & word) ^ k
    if rest := data[len(data) - len(data) % 4 :]:
        found = (found ^ int.from_bytes(rest, "little")) * 0x5BD1E995 & word
    found = (found ^ found >> 13) * 0x5BD1E995 & word
    return (found ^ found >> 15) & 0x7FFFFFFF


def test_the_twin_of_the_hash_is_that_of_kafka() -> None:
    """Values of Kafka's own tests."""
    assert murmur2(b"21") == -973932308 & 0x7FFFFFFF
    assert murmur2(b"foobar") == -790332482 & 0x7FFFFFFF
    assert murmur2(b"a-little-bit-long-string") == -985981536 & 0x7FFFFFFF
    assert murmur2(b"abc") == 479470107


def test_a_topic_has_the_rows_of_a_folder_by_key_and_late_ones_beside(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    counts(rides()).start(sink=tg.sink.files(folder, "json"), batch_rows=30).wait()
    uri = f"kafka://{broker.address}/{topic}"
    sink = tg.sink.kafka(uri, key="route", partitions=3, late=f"{topic}-late")
    counts(rides()).start(sink=sink, batch_rows=30).wait()

    records = in_order(committed(broker, topic))
    lines = [
        line for file in sorted(folder.glob("batch=*/*")) for line in file.read_bytes().splitlines()
    ]
    assert [record.value for record in records] == lines
    assert len({record.headers["tidegate.batch"] for record in records}) > 1
    for record in records:
        assert record.key == record.row["route"].encode()
        assert record.partition == murmur2(record.key) % 3
    late = in_order(committed(broker, f"{topic}-late"))
    lines = [
        line for file in sorted(folder.glob("_late/*/*")) for line in file.read_bytes().splitlines()
    ]
    assert [record.value for record in late] == lines
    assert {record.headers["tidegate.stream"] for record in late} == {b"rides"}
    assert {record.partition for record in late} == {0, 1, 2}
    assert len(late) == 12


def test_the_program_of_the_page_runs(
    broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = blocks("docs/kafka-sink.md", "python")
    block = block.replace("localhost:9092/counts", f"{broker.address}/{topic}")
    names = {"tg": tg, "counts": counts(rides())}
    exec(compile(block.replace("counts.start", "query = counts.start"), "page", "exec"), names)
    names["query"].wait()
    assert len(rows_in(broker, topic)) == 30


def test_without_a_key_rows_are_dealt_in_turn_or_go_to_one_partition(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    for more, partitions in (("", [0, 1, 0, 1]), ("&partition=1", [1, 1, 1, 1])):
        name = f"{topic}-{len(more)}"
        uri = f"kafka://{broker.address}/{name}?partitions=2{more}"
        output = TopicOutput(tmp_path / name, uri)
        output.write(output.start(), 0, rows(*((n, "a", 1) for n in range(4))))
        found = in_order(committed(broker, name))
        assert [record.partition for record in found] == partitions
        assert [record.key for record in found] == [None] * 4
        output.close()


def test_a_table_that_follows_has_the_newest_record_of_each_key(broker: Broker, topic: str) -> None:
    early = stream(rides()).window("1 minute").group_by("route").agg(n=tg.count())
    newest = tg.sink.memory(newest=True)
    early.emit_every("10 seconds").start(sink=newest, batch_rows=20).wait()
    early = stream(rides()).window("1 minute").group_by("route").agg(n=tg.count())
    sink = tg.sink.kafka(f"kafka://{broker.address}/{topic}", upsert=True, partitions=2)
    early.emit_every("10 seconds").start(sink=sink, batch_rows=20).wait()
    records = committed(broker, topic)
    table = {record.key: record.row for record in records}
    assert len(records) > len(table) == newest.table().num_rows
    assert all(json.loads(key or b"").items() <= row.items() for key, row in table.items())
    meant = {(r["window_end"], r["route"]): r["n"] for r in newest.table().to_pylist()}
    found = {(datetime.fromisoformat(r["window_end"]), r["route"]): r["n"] for r in table.values()}
    assert found == meant
    admin = broker.admin()
    described = admin.describe_configs([_resource(topic)])
    (config,) = [future.result(30) for future in described.values()]
    assert config["cleanup.policy"].value == "compact"


def _resource(topic: str) -> Any:
    from confluent_kafka.admin import ConfigResource, ResourceType

    return ConfigResource(ResourceType.TOPIC, topic)


def test_a_command_writes_outputs_to_topics_of_their_names_and_tells_what_it_dropped(
    broker: Broker, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pa.Table.from_pylist(rides())
    pa.parquet.write_table(table, tmp_path / "rides.parquet")
    query = tmp_path / "q.sql"
    query.write_text(
        f"CREATE STREAM rides FROM '{tmp_path}/rides.parquet' TIME at;"
        "INSERT INTO dear SELECT route, fare FROM rides WHERE fare > 20;"
        "INSERT INTO cheap SELECT route, fare FROM rides WHERE fare <= 20;"
    )
    out = f"kafka://{broker.address}/{topic}?partitions=1"
    command = ["run", str(query), "--master", "none", "--out", out, "--format", "csv"]
    assert invoke([*command, "--checkpoint", str(tmp_path / "ckpt")]) == 0
    said = capsys.readouterr().err
    assert "late rows were dropped; late=TOPIC after the ? of --out keeps them" in said
    dear, cheap = (in_order(committed(broker, f"{topic}-{n}")) for n in ("dear", "cheap"))
    assert len(dear) + len(cheap) == 108
    assert all(b',"r' in (record.value or b"") for record in (*dear, *cheap))
    assert invoke([*command, "--checkpoint", str(tmp_path / "ckpt")]) == 0
    assert len(committed(broker, f"{topic}-dear")) == len(dear), "a second run has nothing to do"


OPTIONS = {
    "format=xml": "format must be json or csv or avro; got format=xml",
    "format=parquet": "format must be json or csv or avro; got format=parquet",
    "nonfinite=no": "nonfinite must be refuse or text",
    "format=csv&nonfinite=text": "nonfinite is for JSON",
    "key=a&upsert=yes": "upsert=yes writes the key that follows from the query; got key=a",
    "key=a&partition=1": "rows go to one partition, or to that of their key",
    "partition=-1": "partition must be a whole number from 0; got partition=-1",
    "partitions=0": "partitions must be a whole number from 1",
    "append=maybe": "append must be no or yes",
    "timeout=5": "timeout: a duration must be a number and a unit",
    "timeout=5ms": "timeout must be a second or more",
    "keys=a": "Did you mean key?",
    "sasl.password=hush": "a URI must be without keys and passwords",
}


@pytest.mark.parametrize("query", OPTIONS)
def test_what_a_uri_says_wrong_is_refused_by_its_name(query: str) -> None:
    with pytest.raises(OptionError) as caught:
        of(f"kafka://host:9092/t?{query}")
    assert OPTIONS[query] in str(caught.value)
    assert "hush" not in str(caught.value)


def test_brokers_that_make_topics_make_those_of_results(tmp_path: Path) -> None:
    settings = {"auto.create.topics.enable": "true", "num.partitions": "3"}
    own = Broker(tmp_path / "broker", settings=settings)
    own.start()
    try:
        output = TopicOutput(tmp_path / "run", f"kafka://{own.address}/new")
        output.write(output.start(), 0)
        output.close()
        assert rows_in(own, "new") == meant(1)
        assert len(own.admin().list_topics("new").topics["new"].partitions) == 3
        one = TopicOutput(tmp_path / "one", f"kafka://{own.address}/other?partition=0")
        with pytest.raises(OptionError, match="the topic other must exist"):
            one.start()
    finally:
        own.stop()


def test_topics_that_cannot_take_the_rows_are_refused(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    def refused(more: str, words: str) -> None:
        output = TopicOutput(tmp_path / f"{len(list(tmp_path.iterdir()))}", f"{uri}{more}")
        with pytest.raises(OptionError) as caught:
            output.start()
        assert words in str(caught.value)

    uri = f"kafka://{broker.address}/{topic}"
    refused("", "must exist; got none of this name. Create it, or let it be made by partitions=6")
    broker.create(topic, 2)
    refused("?partitions=3", "got 2 where partitions=3. Leave partitions out: the topic exists.")
    refused("?partition=2", "partition must be one of the 2 of the topic; got partition=2")
    refused("?late=nowhere", "the topic nowhere must exist")
    refused("?key=who", "key must name columns of the results; got who. There are: window_end")
    first = TopicOutput(tmp_path / "first", uri)
    first.write(first.start(), 0)
    first.close()
    refused("", "a new run needs a topic without records")
    behind = TopicOutput(tmp_path / "behind", f"{uri}?append=yes")
    behind.write(behind.start(), 0)
    behind.close()
    assert [r.row for r in committed(broker, topic)] == [*meant(1)[::2]] * 2 + [*meant(1)[1::2]] * 2
    with pytest.raises(OptionError, match="must go on with the topic that has its results"):
        first.start(f"{uri}-other?partitions=1")


def test_an_older_copy_of_a_checkpoint_is_refused(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    output = TopicOutput(tmp_path, f"kafka://{broker.address}/{topic}?partitions=1")
    sink = output.start()
    for batch in range(3):
        output.write(sink, batch)
    older = output.opening(9)
    again = of(output.uri)
    with pytest.raises(OptionError, match="those up to batch 2: the checkpoint is an older copy"):
        again.open(_replaced(older, newest=1))
    assert rows_in(broker, topic) == meant(3)
    output.close()


def _replaced(opening: Any, **fields: Any) -> Any:
    from dataclasses import replace

    return replace(opening, **fields)


def test_a_record_that_the_brokers_refuse_ends_the_run_and_is_written_when_they_take_it(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create(topic, 1, max_message_bytes="1000")
    output = TopicOutput(tmp_path, f"kafka://{broker.address}/{topic}")
    text = random.Random(0).randbytes(5000).hex()
    long = rows((0, text, 1))
    with pytest.raises(SinkError, match=r"batch 0, .*written; got .*Set max.message.bytes"):
        output.write(output.start(), 0, long)
    resource = _resource(topic)
    resource.add_incremental_config(_entry("max.message.bytes", "100000"))
    admin = broker.admin()
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)
    output.start()
    assert [row["k"] for row in rows_in(broker, topic)] == [text]
    output.close()


def _entry(name: str, value: str) -> Any:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry

    return ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)


def test_infinities_are_refused_before_the_commit_or_written_as_texts(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    uri = f"kafka://{broker.address}/{topic}?partitions=1"
    output = TopicOutput(tmp_path, uri)
    table = rows((0, "a", float("inf")))
    with pytest.raises(SinkError, match=r"finite numbers.*kafka://HOST:PORT/TOPIC\?nonfinite=text"):
        output.write(output.start(), 0, table)
    output.write(output.start(f"{uri}&nonfinite=text"), 0, table)
    assert [row["v"] for row in rows_in(broker, topic)] == ["Infinity"]
    output.close()


def test_brokers_that_are_not_there_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tidegate.sink.kafka import topic

    monkeypatch.setattr(topic, "ANSWER_S", 0.5)
    output = TopicOutput(tmp_path, "kafka://127.0.0.1:9/t?partitions=1")
    with pytest.raises(OptionError, match=r"brokers at 127.0.0.1:9 must answer; got .* See that"):
        output.start()


def test_without_the_library_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "confluent_kafka", None)
    output = TopicOutput(tmp_path, "kafka://127.0.0.1:9/t")
    with pytest.raises(UnavailableError, match=r"needs confluent-kafka; .*tidegate\[kafka\]"):
        output.start()


def test_a_sink_tells_nothing_of_settings(tmp_path: Path) -> None:
    sink = tg.sink.kafka("kafka://a:1,b:2/t", config=str(tmp_path / "k.properties"), key=["x", "y"])
    assert isinstance(sink, KafkaSink)
    assert repr(sink) == "KafkaSink('kafka://a:1,b:2/t')"
    assert sink.uri == "kafka://a:1,b:2/t"
    assert not isinstance(sink, PublishedSink), "manifests do not name it"
