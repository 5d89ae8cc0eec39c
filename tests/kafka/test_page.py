"""The queries of docs/kafka.md, run as they stand but for the address of the broker."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tools.kafka import Broker

import tidegate as tg
from tests.kafka.topic import send

PAGE = Path(__file__).parents[2] / "docs" / "kafka.md"
BLOCKS = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("text", BLOCKS)
def test_a_query_of_the_page_runs(broker: Broker, topic: str, text: str) -> None:
    broker.create(topic, 2)
    rows = [{"ts": f"2024-01-01T00:00:{n:02d}Z", "route": "a", "fare": n} for n in range(20)]
    send(broker, topic, [(n % 2, json.dumps(row).encode()) for n, row in enumerate(rows)])
    text = text.replace("localhost:9092/rides", f"{broker.address}/{topic}")
    if "SELECT" not in text:
        text += "SELECT route, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route;"
    found = tg.Session(master="none").sql(text).to_arrow().to_pylist()
    assert [row["n"] for row in found] == [10, 10]


def test_there_are_queries_on_the_page() -> None:
    assert len(BLOCKS) == 2
