"""A topic that another client makes while a query starts: brokers show it a moment later."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from tools.kafka import Broker

import tidegate as tg
from tests.kafka.output import TopicOutput, meant
from tests.kafka.reading import rows_in
from tests.kafka.topic import SQL, answer, given, send, spread
from tidegate.errors import SourceError
from tidegate.source.kafka import topic as source_topic

Records = Iterable[tuple[int, bytes | None]]


def made_once_asked_for(
    monkeypatch: pytest.MonkeyPatch, broker: Broker, topic: str, records: Records = ()
) -> None:
    """Make a topic, with records, once brokers have said that there is none."""
    ask = AdminClient.describe_topics

    def asked(self: AdminClient, topics: Any, **more: Any) -> Any:
        found = ask(self, topics, **more)
        monkeypatch.setattr(AdminClient, "describe_topics", ask)
        assert "UNKNOWN_TOPIC" in str(found[topic].exception(60))
        broker.create(topic, 1)
        send(broker, topic, records)
        return found

    monkeypatch.setattr(AdminClient, "describe_topics", asked)


def test_it_is_written(
    broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_once_asked_for(monkeypatch, broker, topic)
    output = TopicOutput(tmp_path, f"kafka://{broker.address}/{topic}")
    output.write(output.start(), 0)
    output.close()
    assert rows_in(broker, topic) == meant(1)


def test_it_is_read(broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made_once_asked_for(monkeypatch, broker, topic, spread(range(100), 1))
    session = tg.Session(master="none")
    stream = session.stream(f"kafka://{broker.address}/{topic}", time="ts", name="r")
    assert given(session.sql(SQL, r=stream).to_arrow().to_pylist()) == answer(range(100))


def test_it_is_read_also_where_making_it_took_longer_than_one_waits_for_it(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_topic, "SHOWN_S", 0.0)
    test_it_is_read(broker, topic, monkeypatch)


def test_a_topic_that_is_missing_is_not_proposed_itself(broker: Broker, topic: str) -> None:
    with pytest.raises(SourceError, match=f"the topic must be there; got {topic}") as refused:
        tg.Session(master="none").stream(f"kafka://{broker.address}/{topic}", time="ts")
    _, _, proposed = str(refused.value).partition("There are:")[0].partition("Did you mean")
    assert topic not in re.findall(r"[\w-]+", proposed)
