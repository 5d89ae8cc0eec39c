"""The driver's consumer of all partitions of a topic.

It learns which offsets exist and puts the records on the shelves of this process. Event times are
decoded when the gate asks for them. Tasks in other processes fetch their records themselves.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidegate import schedule
from tidegate.kafka.client import Complaints, library, reason
from tidegate.source.kafka.fetch import (
    MOST_AT_ONCE,
    PATIENCE_S,
    place_of,
    silent,
    take_messages,
    told,
)
from tidegate.source.kafka.record import RecordRange
from tidegate.source.kafka.topic import Topic

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from tidegate.source.kafka.partition import PartitionSource

_log = logging.getLogger(__name__)

_WAIT_S = 0.1
_AGAIN_S = 0.001
"""How long an empty look counts for all partitions: the gate asks each of them several times."""

_ANSWER_S = 1.0
_QUEUED_KBYTES = 32 * 1024


class TopicFeed:
    """One consumer, made when first needed; it reads each partition from its `next` on.

    Called only in the thread of the gate. A partition that is far ahead of what the gate has looked
    at is paused, so that memory does not grow while it waits for another partition.
    """

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._kafka = library(topic.where)
        self._complaints = Complaints()
        self._consumer: Consumer | None = None
        self._partitions: dict[int, PartitionSource] = {}
        self._asked: set[int] = set()
        """Partitions that the gate has asked for. Only then is their first offset settled."""
        self._assigned: set[int] = set()
        self._paused: set[int] = set()
        self._empty_at = -math.inf
        """When a look at all assigned partitions last found nothing."""

    def join(self, partition: PartitionSource) -> None:
        self._partitions[partition.partition] = partition

    def fill(self, partition: PartitionSource, there: int, wanted: int) -> None:
        """Take records until a partition has those before `wanted`, or no more have come.

        Waits only for records before `there`, which the broker is known to have.
        """
        clock = schedule.current().clock
        came_at = clock.now()
        self._asked.add(partition.partition)
        while partition.next < wanted:
            waits = partition.next < there
            if not waits and self._is_looked_at(partition, clock.now()):
                return
            self._resume(partition)
            if self._take(_WAIT_S if waits else 0.0):
                came_at = clock.now()
            elif not waits:
                self._empty_at = clock.now()
                return
            elif clock.now() - came_at > PATIENCE_S:
                raise silent(self._topic, partition.partition, partition.next, self._complaints)

    def newest(self, partition: PartitionSource) -> int | None:
        """The end of a partition in the broker's last answer; costs no request."""
        if self._consumer is None or partition.partition not in self._assigned:
            return None
        _, high = self._consumer.get_watermark_offsets(self._place(partition), cached=True)
        return int(high) if high >= 0 else None

    def count(self) -> int:
        """How many partitions there are now; 0 where the brokers do not answer."""
        if self._consumer is None:
            return len(self._partitions)
        try:
            found = self._consumer.list_topics(self._topic.name, timeout=_ANSWER_S)
        except self._kafka.KafkaException:
            return 0
        return len(found.topics[self._topic.name].partitions)

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit offsets to the group without waiting; a failure does no harm."""
        if self._consumer is None:
            return
        named = [self._kafka.TopicPartition(self._topic.name, p, o) for p, o in offsets.items()]
        try:
            self._consumer.commit(offsets=named, asynchronous=True)
        except self._kafka.KafkaException as error:
            _log.warning(
                "%s: the group %s is not told how far this run is: %s",
                *(self._topic.where, self._topic.group, reason(error)),
            )

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _is_looked_at(self, partition: PartitionSource, now: float) -> bool:
        """Whether a look just now has found nothing for a partition."""
        reads = partition.partition in self._assigned - self._paused
        return reads and now - self._empty_at < _AGAIN_S

    def _take(self, wait_s: float) -> bool:
        """Hand the records that have come to their partitions; whether any have."""
        consumer = self._assign()
        ends: dict[int, int] = {}
        came: defaultdict[int, list[Any]] = defaultdict(list)
        for message in take_messages(consumer, MOST_AT_ONCE, wait_s):
            if message.error() is None:
                came[message.partition()].append(message)
                continue
            number = message.partition()
            position = self._partitions[number].next if number in self._partitions else 0
            ends[number] = place_of(message, self._topic, number, position)
        for number, messages in came.items():
            ends[number] = max(ends.get(number, 0), messages[-1].offset() + 1)
        for number, end in ends.items():
            partition = self._partitions.get(number)
            if partition is None or end <= partition.next:
                continue
            messages = came[number]
            while messages and messages[0].offset() < partition.next:
                del messages[0]  # read before it was paused
            partition.add(RecordRange.of(messages, partition.next, end, self._topic.whole))
            if not partition.wants() and number not in self._paused:
                consumer.pause([self._place(partition)])
                self._paused.add(number)
        return bool(ends)

    def _assign(self) -> Consumer:
        if self._consumer is None:
            self._consumer = self._topic.consumer(self._complaints, _QUEUED_KBYTES)
        new = [p for n, p in self._partitions.items() if n in self._asked - self._assigned]
        if new:
            places = [self._place(p, p.next) for p in new]
            with told(self._topic, new[0].partition, new[0].next):
                self._consumer.incremental_assign(places)
            self._assigned |= {p.partition for p in new}
        return self._consumer

    def _resume(self, partition: PartitionSource) -> None:
        if partition.partition in self._paused and self._consumer is not None:
            self._consumer.resume([self._place(partition)])
            self._paused.discard(partition.partition)

    def _place(self, partition: PartitionSource, offset: int | None = None) -> Any:
        more = () if offset is None else (offset,)
        return self._kafka.TopicPartition(self._topic.name, partition.partition, *more)
