"""Ranges of offsets as tasks fetch them: a consumer stays with its partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tools.kafka import Broker

from tests.kafka.topic import send, spread, value
from tidegate.errors import SourceError
from tidegate.kafka.address import KafkaAddress
from tidegate.source.kafka.fetch import MOST_AT_REST, close_idle, fetch, resting_places
from tidegate.source.kafka.topic import Topic

Opened = Callable[[str, int], Topic]


@pytest.fixture
def opened(broker: Broker) -> Iterator[Opened]:
    """Makes topics whose idle consumers end with the test."""
    with ExitStack() as ending:

        def make(name: str, partitions: int) -> Topic:
            broker.create(name, partitions)
            uri = f"kafka://{broker.address}/{name}"
            found = Topic(KafkaAddress.parse(uri, "stream r", SourceError, ()))
            ending.callback(close_idle, found)
            return found

        yield make


def test_a_consumer_stays_with_its_partition_from_range_to_range(
    broker: Broker, topic: str, opened: Opened
) -> None:
    """One that changed partitions waited half a second for the answer to its question before."""
    place = opened(topic, 3)
    send(broker, topic, spread(range(60), 3))
    for start in (0, 10):
        for partition in range(3):
            found = fetch(place, partition, start, start + 10)
            numbers = range(partition + 3 * start, partition + 3 * (start + 10), 3)
            assert list(found.values) == [value(n) for n in numbers]
        assert sorted(resting_places(place)) == [(n, start + 10) for n in range(3)]


def test_a_range_that_is_read_again_is_the_same(broker: Broker, topic: str, opened: Opened) -> None:
    place = opened(topic, 1)
    send(broker, topic, spread(range(20), 1))
    assert list(fetch(place, 0, 10, 20).values) == [value(n) for n in range(10, 20)]
    assert list(fetch(place, 0, 0, 10).values) == [value(n) for n in range(10)]
    assert resting_places(place) == [(0, 10)]


def test_of_many_partitions_the_last_ones_keep_their_consumers(
    broker: Broker, topic: str, opened: Opened
) -> None:
    count = MOST_AT_REST + 2
    place = opened(topic, count)
    send(broker, topic, spread(range(count), count))
    for partition in range(count):
        assert list(fetch(place, partition, 0, 1).values) == [value(partition)]
    assert resting_places(place) == [(n, 1) for n in range(2, count)]


def test_a_query_that_ends_closes_its_consumers_also_one_that_is_at_work(
    broker: Broker, topic: str, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = opened(topic, 2)
    send(broker, topic, spread(range(4), 2))
    fetch(place, 0, 0, 1)
    made = []
    first = place.consumer

    def ends_meanwhile(*given: Any) -> Any:
        made.append(first(*given))
        close_idle(place)
        return made[-1]

    monkeypatch.setattr(Topic, "consumer", lambda _, *given: ends_meanwhile(*given))
    assert list(fetch(place, 1, 0, 1).values) == [value(1)]
    assert resting_places(place) == []
    with pytest.raises(RuntimeError, match="closed"):
        made[0].poll(0)
