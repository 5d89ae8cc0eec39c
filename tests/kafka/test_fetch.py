"""Ranges of offsets as tasks fetch them: a consumer stays with its partition."""

from __future__ import annotations

from tools.kafka import Broker

from tests.kafka.topic import send, spread, value
from tidegate.errors import SourceError
from tidegate.kafka.address import KafkaAddress
from tidegate.source.kafka.fetch import MOST_AT_REST, fetch, resting_places
from tidegate.source.kafka.topic import Topic


def opened(broker: Broker, name: str, partitions: int) -> Topic:
    broker.create(name, partitions)
    uri = f"kafka://{broker.address}/{name}"
    return Topic(KafkaAddress.parse(uri, "stream r", SourceError, ()))


def test_a_consumer_stays_with_its_partition_from_range_to_range(
    broker: Broker, topic: str
) -> None:
    """One that changed partitions waited half a second for the answer to its question before."""
    place = opened(broker, topic, 3)
    send(broker, topic, spread(range(60), 3))
    for start in (0, 10):
        for partition in range(3):
            found = fetch(place, partition, start, start + 10)
            numbers = range(partition + 3 * start, partition + 3 * (start + 10), 3)
            assert list(found.values) == [value(n) for n in numbers]
        assert sorted(resting_places(place)) == [(n, start + 10) for n in range(3)]


def test_a_range_that_is_read_again_is_the_same(broker: Broker, topic: str) -> None:
    place = opened(broker, topic, 1)
    send(broker, topic, spread(range(20), 1))
    assert list(fetch(place, 0, 10, 20).values) == [value(n) for n in range(10, 20)]
    assert list(fetch(place, 0, 0, 10).values) == [value(n) for n in range(10)]
    assert resting_places(place) == [(0, 10)]


def test_of_many_partitions_the_last_ones_keep_their_consumers(broker: Broker, topic: str) -> None:
    count = MOST_AT_REST + 2
    place = opened(broker, topic, count)
    send(broker, topic, spread(range(count), count))
    for partition in range(count):
        assert list(fetch(place, partition, 0, 1).values) == [value(partition)]
    assert resting_places(place) == [(n, 1) for n in range(2, count)]
