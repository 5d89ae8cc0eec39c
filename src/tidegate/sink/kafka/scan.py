"""Searches the records of the topics for a batch, where brokers have forgotten its marker."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from tidegate import schedule
from tidegate.batch import BatchId
from tidegate.errors import OptionError
from tidegate.kafka.address import KafkaAddress
from tidegate.kafka.client import ANSWER_S, library, make_consumer
from tidegate.sink.kafka.wire import origin

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_SKEW_MS = 3_600_000
"""How far a broker's clock may be behind ours, where brokers stamp the records themselves."""


def has_batch(
    address: KafkaAddress, topics: Mapping[str, int], writer: str, batch: BatchId, at_ms: int
) -> bool:
    """Whether a record of a batch is committed; `at_ms` is the timestamp of its records.

    Reads from that time on, at most to the present end of the topics. `topics` are those that parts
    of the batch go to, with the number of partitions of each.
    """
    kafka = library(address.where)
    consumer = make_consumer(
        address,
        OptionError,
        group_id=writer,  # which it neither joins nor commits to
        enable_auto_commit=False,
        isolation_level="read_committed",
        enable_partition_eof=True,
    )
    try:
        places = [
            kafka.TopicPartition(topic, number, max(0, at_ms - _SKEW_MS))
            for topic, count in topics.items()
            for number in range(count)
        ]
        found = consumer.offsets_for_times(places, ANSWER_S)
        open_ = [place for place in found if place.offset >= 0]
        consumer.assign(open_)
        return _read(consumer, len(open_), set(origin(writer, batch)), kafka)
    finally:
        consumer.close()


def _read(
    consumer: Consumer, waiting: int, wanted: set[tuple[str, str | bytes | None]], kafka: ModuleType
) -> bool:
    """Whether a record has the wanted headers. `waiting` counts the partitions yet to end."""
    clock = schedule.current().clock
    until = clock.now() + ANSWER_S
    while waiting:
        for message in consumer.consume(10_000, 0.5):
            error = message.error()
            if error is None:
                until = clock.now() + ANSWER_S
                if wanted <= set(message.headers() or ()):
                    return True
            elif error.code() == kafka.KafkaError._PARTITION_EOF:
                waiting -= 1
            else:
                raise kafka.KafkaException(error)
        if clock.now() > until:
            raise TimeoutError(f"no record for {ANSWER_S:.0f} s")
    return False
