"""Fetches ranges of offsets: in tasks, and in the driver where it reads something again.

A consumer stays open when its range is done. The next batch of a resident task then continues at
the offset of that consumer, which has fetched new records meanwhile.
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
"""How long existing records may take to come; a broker may restart meanwhile."""

MOST_AT_ONCE = 10_000
_WAIT_S = 0.1
_QUEUED_KBYTES = 4 * 1024
MOST_AT_REST = 32
"""How many idle consumers of a topic a process keeps, each for one partition.

A consumer that is assigned another partition drops what it has read ahead. Its first records come
only after the broker has answered the request for the old partition, up to half a second later.
"""


@dataclass
class _RangeConsumer:
    """A consumer of one partition, and the offset that it delivers next."""

    consumer: Consumer
    complaints: Complaints
    partition: int
    position: int = -1


@dataclass
class _Idle:
    """The idle consumers of one topic."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    consumers: list[_RangeConsumer] = field(default_factory=list)
    ended: bool = False
    """Nobody looks here any more: a consumer that is returned is closed."""


_idle: dict[tuple[object, ...], _Idle] = {}
_making = threading.Lock()


def fetch(topic: Topic, partition: int, start: int, stop: int) -> RecordRange:
    """The records of [start, stop): those that this process holds, the others from the broker."""
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
    """Partition and offset of each idle consumer; the one used last is at the end."""
    with _making:
        idle = _idle.setdefault(topic.key, _Idle())
    with idle.lock:
        return [(held.partition, held.position) for held in idle.consumers]


def close_idle(topic: Topic) -> None:
    """Close the idle consumers of a topic; called when a query over it ends in this process.

    Another query over the same topic makes its consumers anew.
    """
    with _making:
        idle = _idle.pop(topic.key, None)
    if idle is None:
        return
    with idle.lock:
        idle.ended = True
        consumers, idle.consumers = idle.consumers, []
    for held in consumers:
        held.consumer.close()


def _fetched(topic: Topic, partition: int, start: int, stop: int) -> RecordRange:
    """Fetch from the broker; SourceError where retention has removed some records."""
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
        most = 0 if idle.ended else MOST_AT_REST
        surplus = idle.consumers.pop(0) if len(idle.consumers) > most else None
    if surplus is not None:
        surplus.consumer.close()
    while messages and messages[-1].offset() >= stop:
        messages.pop()
    return RecordRange.of(messages, start, stop, topic.whole)


def _taken(idle: _Idle, topic: Topic, partition: int, start: int) -> _RangeConsumer:
    """Take an idle consumer of the partition, or make one, and move it to `start`.

    The caller owns it until it returns it to `idle`.
    """
    # First choice is the consumer that stands at `start`, which keeps what it has read ahead;
    # second any one of the same partition (MOST_AT_REST says what another one would cost).
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
    """Messages up to the end of a range, perhaps one more; moves the consumer on."""
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
    """The messages that are there now, up to `most`; waits for a first one up to `wait_s`."""
    found = consumer.consume(most, 0)
    if found or not wait_s:
        return list(found)
    first = consumer.poll(wait_s)
    return [] if first is None else [first, *consumer.consume(most - 1, 0)] if most > 1 else [first]


def place_of(message: Any, topic: Topic, partition: int, position: int) -> int:
    """The offset that an "end of partition" message names; other errors are raised, or ignored
    where the client tries again by itself."""
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
    """Turn what a consumer raises into a RunError."""
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
    """The error where existing records do not come."""
    return RunError(
        f"topic {topic.name}, partition {partition}",
        f"the broker must send the records from offset {position} on within {PATIENCE_S:g} s",
        complaints.newest or "nothing",
        "Check the brokers, then start again: a restart goes on from what is committed.",
    )
