"""Asks the brokers about a topic: its partitions, their offsets, and which topic it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from tidegate import schedule
from tidegate.errors import SourceError, near
from tidegate.kafka.address import KafkaAddress
from tidegate.kafka.client import (
    ANSWER_S,
    SHOWN_S,
    Complaints,
    library,
    make_admin,
    make_consumer,
    reason,
)

if TYPE_CHECKING:
    from confluent_kafka import Consumer

T = TypeVar("T")

COMMITTED = "read_committed"
ISOLATIONS = (COMMITTED, "read_uncommitted")

_LOOK_AGAIN_S = 0.1
_UNGROUPED = "tidegate"
"""The group of consumers that neither join a group nor commit: the client demands a name."""


@dataclass(frozen=True)
class Topic:
    """A topic of a cluster, for clients in any process; picklable, and without credentials."""

    address: KafkaAddress
    isolation: str = COMMITTED
    group: str | None = None
    whole: bool = False
    """Whether keys and headers of records are needed; if not they are not kept."""
    id: str = ""
    """The brokers' id of the topic, which tells it from an earlier one of the same name."""

    @property
    def where(self) -> str:
        return self.address.where

    @property
    def name(self) -> str:
        return self.address.topic

    @property
    def key(self) -> tuple[object, ...]:
        """A key for the caches of this process."""
        address = self.address
        return address.servers, self.name, self.id, address.config, self.isolation, self.whole

    def consumer(self, complaints: Complaints, queued_kbytes: int) -> Consumer:
        """A consumer that reads only assigned offsets; a missing one is an error, never skipped."""
        return make_consumer(
            self.address,
            SourceError,
            group_id=self.group or _UNGROUPED,
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            auto_offset_reset="error",
            enable_partition_eof=True,
            isolation_level=self.isolation,
            queued_max_messages_kbytes=queued_kbytes,
            fetch_queue_backoff_ms=5,  # by default a full queue stops all fetching for a second
            fetch_error_backoff_ms=100,
            error_cb=complaints.take,
        )


@dataclass(frozen=True)
class Extents:
    """For each partition the first offset, and the one after the last that may be read."""

    topic_id: str
    low: Mapping[int, int]
    high: Mapping[int, int]


class TopicQuestions:
    """Requests to the brokers; SourceError where they do not answer or have no such topic."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._kafka = library(topic.where)
        self._complaints = Complaints()
        self._admin = make_admin(topic.address, SourceError, error_cb=self._complaints.take)

    def extents(self) -> Extents:
        """The extents of all partitions; with committed records, up to the last stable offset."""
        topic_id, partitions = self._described()
        specs = self._kafka.admin.OffsetSpec
        low = self.offsets(partitions, specs.earliest())
        return Extents(topic_id, low, self.offsets(partitions, specs.latest()))

    def at_time(self, partitions: Sequence[int], time_us: int) -> dict[int, int | None]:
        """The first offsets with a record timestamp of at least this; None where there is none."""
        spec = self._kafka.admin.OffsetSpec.for_timestamp(-(-time_us // 1000))
        found = self.offsets(partitions, spec)
        return {p: None if offset < 0 else offset for p, offset in found.items()}

    def offsets(self, partitions: Sequence[int], spec: Any) -> dict[int, int]:
        """The offsets of some partitions, by an `OffsetSpec` of the library."""
        places = [self._kafka.TopicPartition(self._topic.name, p) for p in partitions]
        levels = self._kafka.IsolationLevel
        level = levels.READ_COMMITTED if self._topic.isolation == COMMITTED else None
        level = levels.READ_UNCOMMITTED if level is None else level

        def ask() -> dict[int, int]:
            asked = self._admin.list_offsets(
                dict.fromkeys(places, spec), isolation_level=level, request_timeout=ANSWER_S
            )
            return {place.partition: self._answer(asked[place]).offset for place in places}

        return self._led(ask)

    def _led(self, ask: Callable[[], T]) -> T:
        """Call `ask` until all partitions have leaders, for at most ANSWER_S.

        A topic that was just created has none for a moment. Nor has one whose broker has gone,
        until another broker leads.
        """
        clock = schedule.current().clock
        until_s = clock.now() + ANSWER_S
        while True:
            try:
                return ask()
            except NoLeaderError as error:
                if clock.now() >= until_s:
                    raise self._silent(error.cause) from None
            clock.sleep(_LOOK_AGAIN_S)

    def _described(self) -> tuple[str, list[int]]:
        name = self._topic.name
        topics = self._kafka.TopicCollection([name])

        def ask() -> Any:
            asked = self._admin.describe_topics(topics, request_timeout=ANSWER_S)
            return self._answer(asked[name])

        clock = schedule.current().clock
        began_s = clock.now()
        while True:
            try:
                found = self._led(ask)
            except UnknownTopicError:
                waited_s = clock.now() - began_s
                if waited_s >= SHOWN_S:
                    listed = self._listed()
                    # One that is listed by now was created meanwhile: the next answer knows it.
                    if name not in listed or waited_s >= ANSWER_S:
                        raise self._unknown(listed) from None
                clock.sleep(_LOOK_AGAIN_S)
            else:
                return str(found.topic_id), sorted(p.id for p in found.partitions)

    def _listed(self) -> list[str]:
        try:
            every = self._admin.list_topics(timeout=ANSWER_S).topics
        except self._kafka.KafkaException as error:
            raise self._silent(error) from None
        return sorted(name for name in every if not name.startswith("__"))

    def _unknown(self, listed: Sequence[str]) -> SourceError:
        name = self._topic.name
        others = [other for other in listed if other != name]
        return SourceError(self._topic.where, "the topic must be there", name, near(name, others))

    def _answer(self, asked: Any) -> Any:
        try:
            return asked.result(ANSWER_S + 5)
        except self._kafka.KafkaException as error:
            code, codes = error.args[0].code(), self._kafka.KafkaError
            if code == codes.UNKNOWN_TOPIC_OR_PART:
                raise UnknownTopicError from error
            if code in (codes.NOT_LEADER_FOR_PARTITION, codes.LEADER_NOT_AVAILABLE):
                raise NoLeaderError(error) from error
            raise self._silent(error) from None

    def _silent(self, error: Exception) -> SourceError:
        self._admin.poll(0)
        got = self._complaints.newest or reason(error)
        servers = self._topic.address.servers
        remedy = "Check that they run, their address, and the credentials."
        return SourceError(self._topic.where, f"the brokers {servers} must answer", got, remedy)


class UnknownTopicError(Exception):
    """The brokers know no such topic."""


class NoLeaderError(Exception):
    """The broker that was asked does not lead a partition, or none does."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def removed(topic: Topic, partition: int, start: int, low: int | None) -> SourceError:
    """The error where the broker has removed records that are needed."""
    there = "" if low is None else f"; the first that is there is {low}"
    return SourceError(
        f"topic {topic.name}, partition {partition}",
        f"offsets from {start} on are needed to go on",
        f"records removed by retention from {start} on{there}",
        "Lost records are not skipped: start from an empty checkpoint, and let the topic keep its "
        "records (retention.ms) for longer than a query may be down.",
    )


def made_anew(topic: Topic) -> SourceError:
    """The error where another topic has taken the name of the one that was read."""
    return SourceError(
        f"topic {topic.name}",
        "must be the topic that this checkpoint has read",
        "one of the same name that was made later",
        "Start from an empty checkpoint: its offsets count other records.",
    )
