"""Reads what consumers of committed records see in a topic, to its end."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import OffsetSpec
from tools.kafka import Broker

PATIENCE_S = 30.0


@dataclass(frozen=True)
class Record:
    """One record, with its headers by name."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes]

    @property
    def place(self) -> tuple[int, int]:
        """Where in the output it stands: batch and sequence."""
        return int(self.headers["tidegate.batch"]), int(self.headers["tidegate.sequence"])

    @property
    def row(self) -> dict[str, Any]:
        assert self.value is not None
        row: dict[str, Any] = json.loads(self.value)
        return row


def committed(broker: Broker, topic: str) -> list[Record]:
    """All committed records, by partition and in its order; none is dropped.

    Brokers answer a commit before all partitions show it, so this waits until no transaction is
    open.
    """
    ends = _ends(broker, topic)
    consumer = _consumer(broker.address)
    found: list[Record] = []
    consumer.list_topics(topic, timeout=PATIENCE_S)  # else it learns of a new topic some time later
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(len(ends))])
        waiting, until = len(ends), time.monotonic() + PATIENCE_S
        while waiting:
            assert time.monotonic() < until, f"{topic}: its end must be reached"
            first = consumer.poll(0.5)  # a wait for many would wait for as many
            for message in () if first is None else [first, *consumer.consume(10_000, 0)]:
                if message.error() is not None:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    waiting -= 1
                    continue
                headers = dict(message.headers() or [])
                found.append(Record(message.partition(), message.key(), message.value(), headers))
    finally:
        consumer.unassign()
    return sorted(found, key=lambda record: record.partition)


def in_order(records: list[Record]) -> list[Record]:
    """Records of all partitions in the output order; each must be there once."""
    places = [record.place for record in records]
    assert len(set(places)) == len(places), "a row is there twice"
    for number in {record.partition for record in records}:
        own = [record.place for record in records if record.partition == number]
        assert own == sorted(own), f"partition {number} must be in the output order"
    return sorted(records, key=lambda record: record.place)


def rows_in(broker: Broker, topic: str) -> list[dict[str, Any]]:
    """The rows of the topic in the output order."""
    return [record.row for record in in_order(committed(broker, topic))]


@cache
def _consumer(address: str) -> Consumer:
    """One for all: each would connect, and learn of the topics, anew."""
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "log_level": 0,
        }
    )


def _ends(broker: Broker, topic: str) -> list[int]:
    """The ends of the partitions, once all transactions in them have ended."""
    admin = broker.admin()
    count = len(admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions)
    asked = {TopicPartition(topic, n): OffsetSpec.latest() for n in range(count)}
    until = time.monotonic() + PATIENCE_S
    levels = IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED
    while True:
        answers = [admin.list_offsets(asked, isolation_level=level) for level in levels]
        high, stable = ([f.result(PATIENCE_S).offset for f in a.values()] for a in answers)
        if high == stable:
            return high
        assert time.monotonic() < until, f"{topic}: a transaction must end"
        time.sleep(0.02)
