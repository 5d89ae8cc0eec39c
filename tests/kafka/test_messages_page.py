"""The queries of docs/messages.md, run as they stand but for the addresses."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

from tools.kafka import Broker
from tools.schema_registry import RegistryServer

import tidegate as tg
from tests.kafka.test_schema_registry import START, TS, avro
from tests.kafka.topic import send
from tidegate.kafka.schema_registry import SchemaRegistry

PAGE = Path(__file__).parents[2] / "docs" / "messages.md"
RIDE = {"type": "record", "name": "Ride", "fields": [TS, {"name": "route", "type": "string"}]}


def test_the_query_of_the_page_runs(broker: Broker, registry: RegistryServer, topic: str) -> None:
    (text,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    id_ = SchemaRegistry(registry.url).register(f"{topic}-value", json.dumps(RIDE))
    broker.create(topic, 2)
    rows = [{"ts": START + timedelta(seconds=n), "route": "a"} for n in range(20)]
    send(broker, topic, [(n % 2, avro(RIDE, id_, row)) for n, row in enumerate(rows)])
    text = text.replace("localhost:9092/rides", f"{broker.address}/{topic}")
    text = text.replace("http://localhost:8081", registry.url)
    found = tg.Session(master="none").sql(text).to_arrow().to_pylist()
    assert [(row["route"], row["n"]) for row in found] == [("a", 10), ("a", 10)]
