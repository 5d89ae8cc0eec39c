"""A real schema registry: its client, values of its wire format, and schemas that change."""

from __future__ import annotations

import base64
import io
import json
import pickle
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import fastavro
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from tools.kafka import Broker
from tools.schema_registry import RegistryServer

import tidegate as tg
from tests.source.message.check import read
from tests.source.message.event_proto import event_file
from tidegate.errors import OptionError, RunError, SourceError
from tidegate.kafka import schema_registry
from tidegate.kafka.schema_registry import PREFIX, SchemaRegistry, check_url
from tidegate.kafka.wire import header
from tidegate.source.message.avro.format import AvroValues
from tidegate.source.message.registry import open_values
from tidegate.source.message.value import ValueLayout, ValueLook
from tidegate.source.subscription import Reading

START = datetime(2024, 1, 1, tzinfo=UTC)
TS = {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}}
V1 = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}, TS]}
V2 = V1 | {
    "fields": [
        {"name": "id", "type": "long"},
        TS,
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "size", "type": "int", "default": 7},
    ]
}
V3 = V2 | {"fields": [*V2["fields"][:3], {"name": "size", "type": "int", "default": 9}]}


def avro(schema: Any, id_: int, row: dict[str, Any]) -> bytes:
    out = io.BytesIO(header(id_))
    out.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema, _force=True), row)
    return out.getvalue()


def layout(url: str, subject: str, **options: object) -> ValueLayout:
    reading = Reading.of(None, {"registry": url, **options}, "test")
    return open_values(ValueLook("test", None, reading, lambda: (), subject))


def test_values_of_several_writers_are_read_by_one_schema(
    registry: RegistryServer, topic: str
) -> None:
    client = SchemaRegistry(registry.url)
    one, two = (client.register(f"{topic}-value", json.dumps(v)) for v in (V1, V2))
    assert client.register(f"{topic}-value", json.dumps(V2)) == two
    values = [
        avro(V1, one, {"id": 1, "ts": START}),
        avro(V2, two, {"id": 2, "ts": START, "name": "b", "size": 3}),
        b"\1nothing",
        header(999_999) + b"x",
        b"\0",
        avro(V1, one, {"id": 5, "ts": START}),
        avro(V2, two, {"id": 6, "ts": START, "name": "b", "size": 3})[:-1],
    ]
    found = layout(registry.url, f"{topic}-value", format="avro")
    assert found.types_from == f"as in schema {two} of the registry"
    rows, reasons = read(found, values)
    assert {i: tuple(row.values()) for i, row in rows.items()} == {
        0: (1, START, None, 7),
        1: (2, START, "b", 3),
        5: (5, START, None, 7),
    }
    assert reasons == {
        2: "a value of a schema registry must begin with byte 0, got 1",
        3: "the schema registry has no schema 999999",
        4: "a value of a schema registry must begin with 5 bytes, got 1",
        6: f"the value ends within a field, at byte {len(values[6])}",
    }
    older, reasons = read(layout(registry.url, f"{topic}-value", format="avro", version=1), values)
    assert reasons[1].startswith(f"schema {two} does not resolve to the one of the run: field id")
    assert list(older) == [0, 5]


def test_a_task_needs_no_registry_for_schemas_that_the_driver_has_met(
    registry: RegistryServer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = SchemaRegistry(registry.url).register(topic, json.dumps(V1))
    found = layout(registry.url, topic, format="avro")
    value = avro(V1, id_, {"id": 1, "ts": START})
    sent = pickle.dumps(found)
    monkeypatch.setattr(schema_registry, "urlopen", None)
    assert read(pickle.loads(sent), [value]) == ({0: {"id": 1, "ts": START}}, {})


def test_json_behind_an_id_is_read(registry: RegistryServer, topic: str) -> None:
    client = SchemaRegistry(registry.url)
    json_id = client.register(topic, '{"type": "object", "properties": {}}', "JSON")
    avro_id = client.register(f"{topic}-avro", json.dumps(V1))
    values = [header(json_id) + b'{"a": 1}', header(avro_id) + b"{}", b'{"a": 2}', None]
    reading = Reading.of(None, {"registry": registry.url}, "test")
    found = open_values(ValueLook("test", None, reading, lambda: values[:1], topic))
    rows, reasons = read(found, values)
    assert rows == {0: {"a": 1}, 3: {"a": None}}
    assert reasons == {
        1: f"schema {avro_id} is of kind AVRO, not JSON",
        2: "a value of a schema registry must begin with byte 0, got 123",
    }


OF_CONFLUENT = {
    # AvroSerializer and ProtobufSerializer of confluent-kafka 2.16 have written these, behind ids.
    "avro": ("020271", "0402027a0279"),
    "protobuf": ("020208033a0178", "000a020801", "0400000801"),
}


def test_what_serializers_of_confluent_wrote_is_read(registry: RegistryServer, topic: str) -> None:
    client = SchemaRegistry(registry.url)
    fields = [{"name": "a", "type": "int"}, {"name": "b", "type": "string"}]
    id_ = client.register(topic, json.dumps({"type": "record", "name": "R", "fields": fields}))
    value = header(id_) + bytes.fromhex(OF_CONFLUENT["avro"][0])
    rows, _ = read(layout(registry.url, topic, format="avro"), [value])
    assert rows == {0: {"a": 1, "b": "q"}}

    text = base64.b64encode(event_file().SerializeToString()).decode()
    id_ = client.register(f"{topic}-pb", text, "PROTOBUF")
    values = [header(id_) + bytes.fromhex(written) for written in OF_CONFLUENT["protobuf"]]
    wanted = {"shop.Event": 0, "shop.Outer": 1, "shop.Outer.Inner": 2}
    for message, place in wanted.items():
        found = layout(registry.url, f"{topic}-pb", format="protobuf", message=message)
        rows, reasons = read(found, values)
        assert list(rows) == [place]
        other = next(name for name, at in wanted.items() if at != place)
        assert reasons[wanted[other]] == f"message {other}, not {message}"
    assert rows[2] == {"z": 1}


def test_schemas_that_refer_to_others_are_whole(registry: RegistryServer, topic: str) -> None:
    client = SchemaRegistry(registry.url)
    inner = {"type": "record", "name": "shop.I", "fields": [{"name": "x", "type": "int"}]}
    client.register(f"{topic}-inner", json.dumps(inner))
    outer = {"type": "record", "name": "O", "fields": [{"name": "i", "type": "shop.I"}]}
    reference = {"name": "shop.I", "subject": f"{topic}-inner", "version": 1}
    body = {"schema": json.dumps(outer), "references": [reference]}
    asked = Request(
        f"{registry.url}/subjects/{topic}/versions",
        json.dumps(body).encode(),
        {"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    with urlopen(asked, timeout=30) as answer:
        id_ = json.load(answer)["id"]
    rows, _ = read(layout(registry.url, topic, format="avro"), [header(id_) + b"\x06"])
    assert rows == {0: {"i": {"x": 3}}}


def test_what_a_registry_does_not_have_is_told(registry: RegistryServer, topic: str) -> None:
    SchemaRegistry(registry.url).register(f"{topic}-value", json.dumps(V1))
    with pytest.raises(SourceError) as raised:
        layout(registry.url, f"{topic}-valu", format="avro")
    assert f"got no subject {topic}-valu. Did you mean {topic}-value" in str(raised.value)
    with pytest.raises(SourceError, match=f"no version 7 of subject {topic}-value"):
        layout(registry.url, f"{topic}-value", format="avro", version=7)
    with pytest.raises(SourceError, match="must have a schema of kind PROTOBUF; got AVRO"):
        layout(registry.url, f"{topic}-value", format="protobuf")
    with pytest.raises(RunError, match="must give what it is asked for; got 4"):
        SchemaRegistry(registry.url).register(f"{topic}-value", "{")


def test_a_registry_that_is_away_ends_the_run_and_rejects_nothing(
    registry: RegistryServer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_registry, "_PAUSE_S", 0.0)
    SchemaRegistry(registry.url).register(f"{topic}-value", json.dumps(V1))
    found = layout(registry.url, f"{topic}-value", format="avro")
    assert isinstance(found, AvroValues)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        away = SchemaRegistry(f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr(schema_registry, "ANSWER_S", 0.1)
        with pytest.raises(RunError, match=r"must answer within 0\.1 s; got timed out"):
            replace(found, registry=away).parse([header(12_345) + b"x"])
    with pytest.raises(SourceError, match="must answer within"):
        layout("http://127.0.0.1:9", "s", format="avro")


@pytest.fixture
def guarded(registry: RegistryServer) -> Iterator[str]:
    """The registry behind a door that wants the user `tide` with a password."""

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pair = base64.b64encode(b"tide:of-no-worth").decode()
            if self.headers["Authorization"] not in (f"Basic {pair}", "Bearer worthless"):
                self.send_error(401)
                return
            try:
                with urlopen(registry.url + self.path, timeout=30) as answer:
                    code, body = 200, answer.read()
            except HTTPError as error:
                code, body = error.code, error.read()
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_credentials_come_from_the_environment_or_a_file_and_stay_there(
    registry: RegistryServer,
    guarded: str,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    SchemaRegistry(registry.url).register(topic, json.dumps(V1))
    with pytest.raises(SourceError, match=f"got 401 Unauthorized.*credentials in {PREFIX}USERNAME"):
        layout(guarded, topic, format="avro")
    monkeypatch.setenv(f"{PREFIX}USERNAME", "tide")
    monkeypatch.setenv(f"{PREFIX}PASSWORD", "of-no-worth")
    found = layout(guarded, topic, format="avro")
    assert b"of-no-worth" not in pickle.dumps(found)
    assert "of-no-worth" not in repr(found) + json.dumps(found.saved())
    monkeypatch.delenv(f"{PREFIX}USERNAME")
    monkeypatch.delenv(f"{PREFIX}PASSWORD")
    config = tmp_path / "registry.properties"
    config.write_text("# who we are\nusername = tide\npassword=of-no-worth\n")
    monkeypatch.setenv(f"{PREFIX}CONFIG", str(config))
    assert layout(guarded, topic, format="avro") == found
    config.write_text("token=worthless\n")
    assert layout(guarded, topic, format="avro") == found
    config.write_text("pasword=x\n")
    with pytest.raises(OptionError, match=r"got pasword in line 1\. Did you mean password"):
        layout(guarded, topic, format="avro")
    monkeypatch.setenv(f"{PREFIX}CONFIG", str(tmp_path / "absent"))
    with pytest.raises(OptionError, match="must name a file that can be read"):
        layout(guarded, topic, format="avro")
    monkeypatch.setenv(f"{PREFIX}USER", "tide")
    with pytest.raises(OptionError, match=f"got {PREFIX}USER. Did you mean {PREFIX}USERNAME"):
        layout(guarded, topic, format="avro")
    with pytest.raises(OptionError, match=f"without keys and passwords.*{PREFIX}PASSWORD") as told:
        check_url("http://tide:of-no-worth@localhost:8081", "test")
    assert "of-no-worth" not in str(told.value)
    with pytest.raises(OptionError, match="an address must be a host, a port and a path") as told:
        check_url("http://of-no-worth@localhost:8081", "test")
    assert "of-no-worth" not in str(told.value)


def test_a_restart_reads_by_the_schema_that_the_run_began_with(
    broker: Broker, registry: RegistryServer, topic: str, tmp_path: Path
) -> None:
    client = SchemaRegistry(registry.url)
    one, two = (client.register(f"{topic}-value", json.dumps(v)) for v in (V1, V2))
    broker.create(topic, 2)
    send(broker, topic, [avro(V1, one, {"id": n, "ts": at(n)}) for n in range(10)])
    send(broker, topic, [b"\0\0\0\0", None])
    send(broker, topic, [avro(V2, two, {"id": 10, "ts": at(10), "name": "x", "size": 1})])
    sql = (
        f"CREATE STREAM r FROM 'kafka://{broker.address}/{topic}' TIME ts "
        f"OPTIONS (format 'avro', registry '{registry.url}'); SELECT id, name, size FROM r"
    )
    assert run(sql, tmp_path, available_now=True) == 2
    three = client.register(f"{topic}-value", json.dumps(V3))
    send(broker, topic, [avro(V1, one, {"id": 11, "ts": at(11)})])
    send(broker, topic, [avro(V3, three, {"id": 12, "ts": at(12), "name": None, "size": 2})])
    assert run(sql, tmp_path, available_now=False) == 2, "counted over all runs"
    files = sorted((tmp_path / "out").glob("batch=*/*.parquet"))
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    found = sorted((row["id"], row["name"], row["size"]) for row in rows)
    # The default of the first run counts for value 11, though a newer version has another one.
    wanted = [(n, None, 7) for n in range(10)]
    assert found == [*wanted, (10, "x", 1), (11, None, 7), (12, None, 2)]


def run(sql: str, folder: Path, available_now: bool) -> int:
    """Run a query over what the topic has; how many records were rejected."""
    places = {"sink": str(folder / "out"), "checkpoint": str(folder / "state")}
    query = tg.Session(master="none").sql(sql).start(**places, available_now=available_now)
    return int(query.wait(120).counters["rows_rejected"])


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def send(broker: Broker, topic: str, values: list[bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": broker.address})
    for place, value in enumerate(values):
        producer.produce(topic, value, partition=place % 2)
    assert producer.flush(60) == 0
    producer.close()
