"""`kafka://host:port/topic?from=latest`: the partitions of a topic as the sources of a stream."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from tidegate import schedule
from tidegate.calendar.microsecond import read_us
from tidegate.clock import Clock
from tidegate.connector import Connector
from tidegate.errors import SourceError, near
from tidegate.kafka.address import KafkaAddress
from tidegate.schema import check_time
from tidegate.source.kafka.column import asked_columns
from tidegate.source.kafka.decode import CarryLimits, TopicDecoder
from tidegate.source.kafka.feed import TopicFeed
from tidegate.source.kafka.fetch import close_idle, fetch
from tidegate.source.kafka.partition import PartitionSource, Stretch
from tidegate.source.kafka.shape import RecordShape, SharedShape
from tidegate.source.kafka.topic import (
    COMMITTED,
    ISOLATIONS,
    Extents,
    Topic,
    TopicQuestions,
    made_anew,
)
from tidegate.source.message.registry import open_values
from tidegate.source.message.value import ValueLook, Values
from tidegate.source.subscription import Subscription

_log = logging.getLogger(__name__)

PARAMETERS = ("from", "group", "isolation", "meta")
EARLIEST, LATEST = "earliest", "latest"
OFFSETS = re.compile(r"\d+:\d+(,\d+:\d+)*")
"""Offsets by partition, as `0:1200,1:800`."""

_SAMPLE = 1000
"""From how many values of all partitions together undeclared columns are inferred."""

_LOOK_S = 0.002
"""How often a waiting run looks for records; a look costs a check of a queue in memory."""

_PARTITIONS_S = 2.0
"""How often the brokers are asked whether the topic has more partitions."""

_LIMITS = CarryLimits()


class KafkaConnector(Connector):
    """The partitions of one topic. With `follow`, partitions that are added later join."""

    def __init__(
        self,
        topic: Topic,
        subscription: Subscription,
        clock: Clock | None = None,
        limits: CarryLimits = _LIMITS,
    ) -> None:
        self._follow = subscription.follow
        self._grows = subscription.follow
        self._clock = clock or schedule.current().clock
        self._extents = TopicQuestions(topic).extents()
        self._topic = replace(topic, id=self._extents.topic_id)
        self._shape = SharedShape(self._shape_of(subscription))
        self.schema = self._shape.now.schema
        if subscription.time is not None:
            check_time(self.schema, subscription.time, subscription.where)
        self._feed = TopicFeed(self._topic)
        self._limits = limits
        self._decoder = TopicDecoder(self._shape, limits)
        self._sources: list[PartitionSource] = []
        self._begins = self._first_offsets()
        self._asked_at = self._clock.now()

    @staticmethod
    def at(subscription: Subscription) -> KafkaConnector:
        """The connector of a URI; SourceError for a wrong URI or brokers that do not answer."""
        address = KafkaAddress.parse(subscription.uri, subscription.where, SourceError, PARAMETERS)
        isolation = address.parameters.get("isolation", COMMITTED)
        if isolation not in ISOLATIONS:
            must = f"isolation must be {' or '.join(ISOLATIONS)}"
            raise SourceError(address.where, must, isolation, near(isolation, ISOLATIONS))
        group = address.parameters.get("group")
        return KafkaConnector(Topic(address, isolation, group), subscription)

    @property
    def types_from(self) -> str:
        return self._shape.now.layout.types_from

    @property
    def arrives(self) -> bool:
        return self._grows

    def discover(self) -> Sequence[PartitionSource]:
        if not self._sources:
            self._add(self._extents, self._begins)
        elif self._grows:
            self._look_for_partitions()
        return self._sources

    def live(self) -> bool:
        return self._follow

    def take_as_of_now(self) -> None:
        """Read only up to the ends that the partitions had when this was opened."""
        self._grows = False

    def expected_s(self) -> float | None:
        return _LOOK_S if self._grows else None

    def committed(self, positions: Mapping[str, int]) -> None:
        """Commit to the consumer group, for tools that watch its lag; nothing here reads it."""
        if self._topic.group is not None and self._sources:
            self._feed.commit({s.partition: positions[s.id] for s in self._sources})

    def close(self) -> None:
        self._feed.close()
        close_idle(self._topic)

    def _shape_of(self, subscription: Subscription) -> RecordShape:
        reading, time = subscription.reading, subscription.time
        meta = self._topic.address.parameters.get("meta")
        own = asked_columns(meta, reading.schema, time, subscription.where)
        self._topic = replace(self._topic, whole="_key" in own or "_headers" in own)
        if reading.schema is not None:
            fields = [f for f in reading.schema if f.name not in own]
            reading = replace(reading, schema=pa.schema(fields))
        of_value = None if time in own else time
        subject = f"{self._topic.name}-value"
        look = ValueLook(subscription.where, of_value, reading, self._sample, subject)
        layout = open_values(look)
        both = [name for name in layout.schema.names if name in own]
        if both:
            must = "a column of the values must have another name than one of the records"
            remedy = "Leave it out of meta, or declare the columns without it."
            raise SourceError(subscription.where, must, both[0], remedy)
        return RecordShape(layout, own, time)

    def _sample(self) -> Values:
        """The oldest values of each partition."""
        low, high = self._extents.low, self._extents.high
        filled = [p for p in low if low[p] < high[p]]
        most = max(_SAMPLE // max(len(filled), 1), 1)
        found: list[bytes | None] = []
        for partition in filled[:_SAMPLE]:
            begin = low[partition]
            end = min(begin + most, high[partition])
            found += fetch(self._topic, partition, begin, end).values
        return found

    def _first_offsets(self) -> Mapping[int, int]:
        """The first offset of each partition, by the parameter `from`."""
        text = self._topic.address.parameters.get("from", EARLIEST)
        if text == EARLIEST:
            return self._extents.low
        if text == LATEST:
            return self._extents.high
        if OFFSETS.fullmatch(text):
            return self._written_offsets(text)
        try:
            time_us = read_us(text)
        except ValueError:
            raise SourceError(
                self._topic.where,
                f"from must be {EARLIEST}, {LATEST}, a time or offsets",
                text,
                "Write a time in ISO 8601, as from=2024-01-31T12:00:00Z, or an offset for each "
                "partition, as from=0:1200,1:800; from=history is for a topic behind THEN.",
            ) from None
        found = TopicQuestions(self._topic).at_time(list(self._extents.low), time_us)
        high = self._extents.high
        return {p: high[p] if offset is None else offset for p, offset in found.items()}

    def _written_offsets(self, text: str) -> Mapping[int, int]:
        """Parse `0:1200,1:800`: one offset for each partition, among those that exist."""
        low, high = self._extents.low, self._extents.high
        pairs = [pair.split(":") for pair in text.split(",")]
        found = {int(partition): int(offset) for partition, offset in pairs}
        if found.keys() != low.keys() or len(found) != len(pairs):
            must = f"from must say one offset for each of the {len(low)} partitions"
            example = ",".join(f"{p}:{low[p]}" for p in low)
            remedy = f"Write for example from={example}."
            raise SourceError(self._topic.where, must, text, remedy)
        for partition, offset in found.items():
            if not low[partition] <= offset <= high[partition]:
                raise SourceError(
                    self._topic.where,
                    f"from must be an offset of partition {partition}, which has "
                    f"{low[partition]} to {high[partition]}",
                    str(offset),
                    "Records that were removed cannot be read; take an offset that is there.",
                )
        return found

    def _look_for_partitions(self) -> None:
        """Add new partitions, with all their records, whatever `from` says."""
        now = self._clock.now()
        if now - self._asked_at < _PARTITIONS_S:
            return
        self._asked_at = now
        if self._feed.count() <= len(self._sources):
            return
        try:
            extents = TopicQuestions(self._topic).extents()
        except SourceError as error:
            _log.warning("%s: new partitions join later: %s", self._topic.where, error)
            return
        if extents.topic_id != self._topic.id:
            raise made_anew(self._topic)
        self._add(extents, extents.low)

    def _add(self, extents: Extents, begins: Mapping[int, int]) -> None:
        known = {s.partition for s in self._sources}
        for partition in sorted(set(extents.low) - known):
            stretch = Stretch(
                low=extents.low[partition],
                first=begins[partition],
                there=extents.high[partition],
                grows=self._grows,
                ends=not self._follow,
            )
            source = PartitionSource(
                self._topic,
                partition,
                self._shape,
                stretch,
                self._feed,
                self._decoder,
                self._clock,
                self._limits,
            )
            self._sources.append(source)
            self._feed.join(source)
