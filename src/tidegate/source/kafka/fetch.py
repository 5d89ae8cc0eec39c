"""Fetches ranges of offsets: in tasks, and where the driver has to read something again.

Consumers stay when a range is done, so that the next batch of a resident task goes on where its
consumer is, with records that have come meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidegate import schedule
from tidegate.errors import RunError
from tidegate.kafka.client import Complaints, library, reason
from tidegate.source.kafka.record import RecordRange, shelf_of
from tidegate.source.kafka.topic import Topic, removed

if TYPE_CHECKING:
    from confluent_kafka import Consumer

PATIENCE_S = 60.0
"""How long records that are there may take to come; a broker may be started again meanwhile."""

MOST_AT_ONCE = 10_000
_WAIT_S = 0.1
_QUEUED_KBYTES = 4 * 1024
MOST_AT_REST = 32
"""Consumers of a topic that are kept in a process though no task uses them, one for a partition.

One that is put to another partition drops what it has read ahead, and its first records come only
when the broker has answered what was asked for the partition before, which may take half a second.
"""


@dataclass
class _RangeConsumer:
    """A consumer of one partition, and the offset where it is."""

    consumer: Consumer
    complaints: Complaints
    partition: int
    position: int = -1


@dataclass
class _Idle:
    """The consumers of one topic that are at rest."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    consumers: list[_RangeConsumer] = field(default_factory=list)


_idle: dict[tuple[object, ...], _Idle] = {}
_making = threading.Lock()


def fetch(topic: Topic, partition: int, start: int, stop: int) -> RecordRange:
    """The records of [start, stop), from what this process holds as far as it does."""
    shelf = shelf_of((*topic.key, partition))
    found = []
    for run in shelf.runs(start, stop):
        if isinstance(run, tuple):
            run = _fetched(topic, partition, *run)
            shelf.put(run)
        found.append(run)
    if not found:
        return RecordRange.of([], start, stop, topic.whole)
    return RecordRange.joined(found)


def resting_places(topic: Topic) -> list[tuple[int, int]]:
    """Partition and offset of each consumer that no task uses; the one used last is at the end."""
    with _making:
        idle = _idle.setdefault(topic.key, _Idle())
    with idle.lock:
        return [(held.partition, held.position) for held in idle.consumers]


def _fetched(topic: Topic, partition: int, start: int, stop: int) -> RecordRange:
    """From the broker. SourceError where retention has removed some of them."""
    with _making:
        idle = _idle.setdefault(topic.key, _Idle())
    held = _taken(idle, topic, partition, start)
    try:
        messages = _read(held, topic, start, stop)
    except BaseException:
        held.consumer.close()
        raise
    with idle.lock:
        idle.consumers.append(held)
        surplus = idle.consumers.pop(0) if len(idle.consumers) > MOST_AT_REST else None
    if surplus is not None:
        surplus.consumer.close()
    while messages and messages[-1].offset() >= stop:
        messages.pop()
    return RecordRange.of(messages, start, stop, topic.whole)


def _taken(idle: _Idle, topic: Topic, partition: int, start: int) -> _RangeConsumer:
    """A consumer of the partition at its place; a new one where none is at rest."""
    with idle.lock:
        own = [c for c in idle.consumers if c.partition == partition]
        held = next((c for c in own if c.position == start), own[0] if own else None)
        if held is not None:
            idle.consumers.remove(held)
    if held is None:
        complaints = Complaints()
        consumer = topic.consumer(complaints, _QUEUED_KBYTES)
        held = _RangeConsumer(consumer, complaints, partition)
    if held.position != start:
        place = library(topic.where).TopicPartition(topic.name, partition, start)
        with told(topic, partition, start):
            held.consumer.assign([place])
        held.position = start
    return held


def _read(held: _RangeConsumer, topic: Topic, start: int, stop: int) -> list[Any]:
    """Messages up to the end of a range, and perhaps one beyond it; moves the consumer on."""
    clock = schedule.current().clock
    messages: list[Any] = []
    came_at = clock.now()
    while held.position < stop:
        most = min(stop - held.position, MOST_AT_ONCE)
        came = take_messages(held.consumer, most, _WAIT_S)
        for message in came:
            if message.error() is None:
                messages.append(message)
            else:
                held.position = place_of(message, topic, held.partition, held.position)
        if came:
            came_at = clock.now()
        if messages:
            held.position = max(held.position, messages[-1].offset() + 1)
        if clock.now() - came_at > PATIENCE_S:
            raise silent(topic, held.partition, held.position, held.complaints)
    return messages


def take_messages(consumer: Consumer, most: int, wait_s: float) -> list[Any]:
    """What is there now, up to so many; waits for the first where there is nothing."""
    found = consumer.consume(most, 0)
    if found or not wait_s:
        return list(found)
    first = consumer.poll(wait_s)
    return [] if first is None else [first, *consumer.consume(most - 1, 0)] if most > 1 else [first]


def place_of(message: Any, topic: Topic, partition: int, position: int) -> int:
    """Where a partition ends for now, which a message says that is no record; refuses errors."""
    error = message.error()
    codes = library(topic.where).KafkaError
    if error.code() == codes._PARTITION_EOF:
        return max(int(message.offset()), position)
    if error.code() in (codes._AUTO_OFFSET_RESET, codes.OFFSET_OUT_OF_RANGE):
        raise removed(topic, partition, position, None)
    if error.retriable():
        return position
    raise _unreadable(topic, partition, position, Exception(error))


@contextmanager
def told(topic: Topic, partition: int, position: int) -> Iterator[None]:
    """Put what a consumer raises into words: one that cannot go on by itself does so."""
    try:
        yield
    except library(topic.where).KafkaException as error:
        raise _unreadable(topic, partition, position, error) from error


def _unreadable(topic: Topic, partition: int, position: int, error: Exception) -> RunError:
    return RunError(
        f"topic {topic.name}, partition {partition}",
        f"records from offset {position} on must be readable",
        reason(error),
        "What is committed stands; a restart goes on from there.",
    )


def silent(topic: Topic, partition: int, position: int, complaints: Complaints) -> RunError:
    """What to say where records that are there do not come."""
    return RunError(
        f"topic {topic.name}, partition {partition}",
        f"the broker must send the records from offset {position} on within {PATIENCE_S:g} s",
        complaints.newest or "nothing",
        "Check the brokers, then start again: a restart goes on from what is committed.",
    )
