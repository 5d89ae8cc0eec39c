"""Results in Avro by a real registry: read by fastavro and by streams, also when columns come."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import fastavro
import pytest
from tools.kafka import Broker
from tools.schema_registry import RegistryServer

import tidegate as tg
from tests.kafka.output import TopicOutput
from tests.kafka.reading import Record, committed, in_order
from tidegate.cli.main import invoke
from tidegate.errors import OptionError
from tidegate.kafka.schema_registry import SchemaRegistry
from tidegate.kafka.wire import HEADER_BYTES, schema_id
from tidegate.sink.registry import of

TOTALS = "SELECT k, SUM(v) AS s, COUNT(*) AS n FROM s [RANGE 60 SECONDS] GROUP BY k"
WIDE = TOTALS.replace("AS n", "AS n, SUM(v) / COUNT(*) AS mean")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(count: int) -> None:
    times = [f"2024-01-01T00:{i // 60:02d}:{i % 60:02d}Z" for i in range(count)]
    lines = [f"{t},{'abc'[i % 3]},{i}.25" for i, t in enumerate(times)]
    Path("s.csv").write_text("\n".join(["ts,k,v", *lines]) + "\n")


def run(sql: str, out: str, *options: str) -> int:
    common = ["--stream", "s=s.csv", "--master", "none", "--available-now", "--batch-rows", "50"]
    return invoke(["run", "-e", sql, *common, "--checkpoint", "ckpt", "--out", out, *options])


def rows_by(registry: RegistryServer, records: list[Record]) -> list[dict[str, Any]]:
    """The values as fastavro reads them, by the schemas that their ids name."""
    client, found = SchemaRegistry(registry.url), []
    for record in records:
        assert record.value is not None
        id_ = schema_id(record.value)
        assert isinstance(id_, int)
        schema = client.by_id(id_)
        assert schema is not None
        body = io.BytesIO(record.value[HEADER_BYTES:])
        read = fastavro.schemaless_reader(body, fastavro.parse_schema(json.loads(schema.text)))
        assert isinstance(read, dict)
        found.append(read)
    return found


def test_results_are_read_back_also_after_a_column_has_come(
    broker: Broker, registry: RegistryServer, topic: str
) -> None:
    broker.create(topic, 1)
    out = f"kafka://{broker.address}/{topic}?registry={registry.url}"
    written(173)
    assert run(TOTALS, out, "--format", "avro") == 0
    first = rows_by(registry, in_order(committed(broker, topic)))
    assert first == tg.Session(master="none").sql(f"{PLACE}{TOTALS}").to_arrow().to_pylist()[:6]
    written(400)
    assert run(WIDE, f"{out}&format=avro") == 0
    found = rows_by(registry, in_order(committed(broker, topic)))
    expected = tg.Session(master="none").sql(f"{PLACE}{WIDE}").to_arrow().to_pylist()
    narrow = [{n: v for n, v in row.items() if n != "mean"} for row in expected]
    assert found == [*narrow[:6], *expected[6:18]]
    stream = (
        f"CREATE STREAM r FROM 'kafka://{broker.address}/{topic}' TIME window_end "
        f"OPTIONS (format 'avro', registry '{registry.url}'); SELECT k, s, n, mean FROM r"
    )
    read = tg.Session(master="none").sql(stream).to_arrow().to_pylist()
    assert [{n: row[n] for n in ("k", "s", "n", "mean")} for row in read] == [
        {n: row.get(n) for n in ("k", "s", "n", "mean")} for row in found
    ]


def test_a_schema_that_the_registry_does_not_take_is_refused_before_the_start(
    broker: Broker, registry: RegistryServer, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.create(topic, 1)
    subject = f"results of {topic}"
    out = f"kafka://{broker.address}/{topic}?format=avro&registry={registry.url}"
    other = {"type": "record", "name": "Result", "namespace": "tidegate", "fields": []}
    other["fields"] = [{"name": "k", "type": "long"}]
    SchemaRegistry(registry.url).register(subject, json.dumps(other))
    rule = json.dumps({"compatibility": "BACKWARD"}).encode()
    place = f"{registry.url}/config/{quote(subject)}"
    kind = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    with urlopen(Request(place, rule, kind, method="PUT")) as answer:
        assert answer.status == 200
    written(100)
    assert run(TOTALS, f"{out}&subject={quote(subject)}") == 2
    said = capsys.readouterr().err
    assert f"the schema registry must take the schema of the results as {subject}; got 409" in said
    assert committed(broker, topic) == []
    assert run(TOTALS, out) == 0, "the topic's own subject has no such rule"


def test_the_newest_rows_of_keys_are_avro_too(
    broker: Broker, registry: RegistryServer, topic: str, tmp_path: Path
) -> None:
    broker.create(topic, 1)
    uri = f"kafka://{broker.address}/{topic}?format=avro&registry={registry.url}&upsert=yes"
    written(100)
    sql = "SELECT k, COUNT(*) AS n FROM s [RANGE 60 SECONDS] GROUP BY k EMIT EVERY 20 SECONDS"
    assert run(sql, uri) == 0
    records = in_order(committed(broker, topic))
    newest = {record.key: record for record in records}
    rows = rows_by(registry, list(newest.values()))
    found = sorted((row["k"], row["n"]) for row in rows if row["final"])
    assert found == [("a", 20), ("b", 20), ("c", 20)]


def test_a_registry_that_is_away_is_named(broker: Broker, topic: str, tmp_path: Path) -> None:
    broker.create(topic, 1)
    uri = f"kafka://{broker.address}/{topic}?format=avro&registry=http://127.0.0.1:9"
    with pytest.raises(OptionError, match=r"must take the schema of the results as .*-value; got"):
        TopicOutput(tmp_path / "run", uri).start()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("format=avro", "values in Avro need a schema registry; got none. Write registry="),
        ("registry=http://h:1", "registry is for values in Avro; got format=json"),
        ("format=csv&subject=a", "subject is for values in Avro; got format=csv"),
        ("format=avro&registry=h:1", "must be the address of a schema registry"),
        ("format=avro&registry=http://u:hush@h", "must be without keys and passwords"),
        ("format=protobuf&registry=http://h:1", "read, and not written. Write format=avro and reg"),
    ],
)
def test_parameters_of_avro_that_mean_nothing_are_refused(query: str, words: str) -> None:
    with pytest.raises(OptionError) as told:
        of(f"kafka://host:9092/t?{query}")
    assert words in str(told.value)
    assert "hush" not in str(told.value)


PLACE = "CREATE STREAM s FROM 's.csv' TIME ts; "
