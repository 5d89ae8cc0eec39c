"""Topics of a real broker in simulated courses: every call of a client is behind the boundary.

A driver that begins asks its questions by a connection that is there already, which saves time;
its producers and consumers are its own.
"""

from __future__ import annotations

import itertools
import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tools.kafka import Broker

from tests.kafka.reading import committed, in_order
from tests.simulation.connector.boundary import Boundary
from tests.simulation.connector.connector import (
    Found,
    SinkConnector,
    SourceConnector,
    plain,
)
from tidegate.kafka import client
from tidegate.sink.protocol import Sink
from tidegate.sink.registry import of
from tidegate.source.kafka import fetch
from tidegate.testing.simulation.world import World

PATIENCE_S = 30.0
SOON_S = 0.1
PASSING = (KafkaError._TIMED_OUT, KafkaError.CONCURRENT_TRANSACTIONS)
PARTITIONS = 2
HELD_S = 2.0
QUICK = {"fetch_wait_max_ms": 10}
"""Brokers keep a consumer that is at the end waiting; a course has no time for that."""

_topics = itertools.count()

LOCAL = frozenset("consumer_group_metadata pause resume get_watermark_offsets poll close".split())
"""What clients do without the broker; a consumer's `poll` is its own (`CourseConsumer`)."""

ANSWERS: Mapping[str, Callable[[Any], list[Any]]] = {
    "create_topics": lambda asked: [topic.topic for topic in asked],
    "describe_topics": lambda asked: list(asked.topic_names),
    "list_offsets": list,
    "list_consumer_group_offsets": lambda asked: [group.group_id for group in asked],
}
"""Calls that are answered later, and what their answers are found by."""


def error(code: int, **flags: bool) -> KafkaException:
    return KafkaException(KafkaError(code, "simulated", **flags))


class ClientWays:
    """Raises what a client does: brokers that are away, a transaction that must end, no answer."""

    def refused(self) -> Any:
        raise error(KafkaError._TRANSPORT, retriable=True)

    def failed(self) -> Any:
        raise error(KafkaError.COORDINATOR_NOT_AVAILABLE, txn_requires_abort=True)

    def lost(self) -> Any:
        raise error(KafkaError._TIMED_OUT, retriable=True)


class AnswerWays(ClientWays):
    """The same as answers that come later."""

    def __init__(self, keys: list[Any]) -> None:
        self._keys = keys

    def refused(self) -> dict[Any, Future[Any]]:
        return self._failing(KafkaError._TRANSPORT)

    def failed(self) -> dict[Any, Future[Any]]:
        return self._failing(KafkaError.COORDINATOR_NOT_AVAILABLE)

    def lost(self) -> dict[Any, Future[Any]]:
        return self._failing(KafkaError._TIMED_OUT)

    def _failing(self, code: int) -> dict[Any, Future[Any]]:
        found: dict[Any, Future[Any]] = {key: Future() for key in self._keys}
        for future in found.values():
            future.set_exception(error(code))
        return found


class CourseClient:
    """A client whose methods are calls, named by its kind."""

    def __init__(self, boundary: Boundary, real: Any) -> None:
        self._boundary, self._real = boundary, real
        self._kind = type(real).__name__.removesuffix("Client").lower()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if name in LOCAL:
            return found
        call = f"{self._kind} {name}"
        if name not in ANSWERS:
            return lambda *given, **options: self._boundary.call(
                call, lambda: found(*given, **options), ClientWays()
            )

        def asked(first: Any, *given: Any, **options: Any) -> Any:
            def ask() -> Any:
                answers = found(first, *given, **options)
                wait(answers.values(), PATIENCE_S)
                return answers

            return self._boundary.call(call, ask, AnswerWays(ANSWERS[name](first)))

        return asked


class SpoiltMessage:
    """What a consumer gives in place of a record where something is wrong."""

    def __init__(self, code: int, retriable: bool, partition: int) -> None:
        self._error = KafkaError(code, "simulated", retriable=retriable)
        self._partition = partition

    def error(self) -> KafkaError:
        return self._error

    def partition(self) -> int:
        return self._partition


class MessageWays:
    """Consumers do not raise: they give an error among the records, and then go on. Records are not
    lost, because librdkafka asks for them again."""

    def __init__(self, consumer: CourseConsumer, came: list[Any]) -> None:
        self._consumer, self._came = consumer, came

    def refused(self) -> list[Any]:
        self._consumer.held = self._came + self._consumer.held
        return [self._spoilt(KafkaError._TRANSPORT, True)]

    def failed(self) -> list[Any]:
        return [*self._came, self._spoilt(KafkaError._TRANSPORT, True)]

    def lost(self) -> list[Any]:
        return [self._spoilt(KafkaError._TIMED_OUT, False)]

    def _spoilt(self, code: int, retriable: bool) -> SpoiltMessage:
        return SpoiltMessage(code, retriable, self._came[0].partition())


class CourseConsumer(CourseClient):
    """A consumer; a look that finds nothing is no call, as nothing can be told from it."""

    def __init__(self, boundary: Boundary, real: Consumer, clients: Clients) -> None:
        super().__init__(boundary, real)
        self.held: list[Any] = []
        self._clients: Clients | None = clients

    def close(self) -> None:
        """Read no more; the client is closed later."""
        if self._clients is not None:
            self._real.unassign()
            self._clients.hold(self._real)
            self._clients = None

    def consume(self, most: int, wait_s: float) -> list[Any]:
        held, self.held = self.held[:most], self.held[most:]
        came = held or list(self._real.consume(most, 0))
        if not came and wait_s:
            first = self._real.poll(wait_s)
            came = [] if first is None else [first]
        if not came:
            return []
        found: list[Any] = self._boundary.call(
            "consumer consume", lambda: came, MessageWays(self, came)
        )
        return found

    def poll(self, wait_s: float) -> Any:
        found = self.consume(1, wait_s)
        self.held = found[1:] + self.held
        return found[0] if found else None


class CourseProducer(CourseClient):
    """A producer that asks brokers again soon, where librdkafka waits for half a second.

    That is while they end the transaction of a producer before it; then a new one is made.
    """

    def __init__(self, boundary: Boundary, make: Callable[[], Producer]) -> None:
        super().__init__(boundary, make())
        self._make = make

    def init_transactions(self, limit_s: float) -> None:
        self._boundary.call("producer init_transactions", self._init, ClientWays())

    def _init(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._real.init_transactions(SOON_S)
                return
            except KafkaException as failure:
                if failure.args[0].code() not in PASSING or time.monotonic() > until:
                    raise
            self._real = self._make()
            self._real.list_topics(timeout=PATIENCE_S)


class Clients:
    """Makes the clients of drivers; all ask their questions by one connection, which lasts.

    Producers and consumers are let go of some seconds later than their driver does it: librdkafka
    2.16 can crash where a client ends while its first answers come.
    """

    def __init__(self, boundary: Boundary, made: Callable[..., Any]) -> None:
        self._boundary, self._made = boundary, made
        self._admins: dict[str, AdminClient] = {}
        self._held: deque[tuple[float, Any]] = deque()

    def make(self, kind: Any, address: Any, failure: Any, own: dict[str, Any]) -> Any:
        if kind is AdminClient:
            if address.servers not in self._admins:
                self._admins[address.servers] = self._made(kind, address, failure, {})
            return CourseClient(self._boundary, self._admins[address.servers])

        if kind is Producer:
            return CourseProducer(
                self._boundary, lambda: self.hold(self._made(kind, address, failure, own))
            )
        real = self._made(kind, address, failure, own | QUICK)
        consumer = CourseConsumer(self._boundary, real, self)
        self._boundary.at_death(consumer.close)
        return consumer

    def close(self) -> None:
        """Wait until all can go."""
        while self._held:
            time.sleep(max(0.0, self._held[0][0] - time.monotonic()))
            self._drop()

    def hold(self, client: Any) -> Any:
        """Keep a client for a while; consumers are closed then."""
        self._held.append((time.monotonic() + HELD_S, client))
        self._drop()
        return client

    def _drop(self) -> None:
        while self._held and self._held[0][0] <= time.monotonic():
            _, client = self._held.popleft()
            if isinstance(client, Consumer):
                client.close()


class OnKafka:
    """What sinks and sources of topics share."""

    boundary: Boundary

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self._broker = broker
        self._admin = broker.admin()

    @contextmanager
    def entered(self) -> Iterator[None]:
        clients = Clients(self.boundary, client._made)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(client, "_made", clients.make)
            yield
        clients.close()


class KafkaSinkCourses(OnKafka, SinkConnector):
    """The sink of a topic, with a topic of late rows."""

    forgets = True
    asides = frozenset({"admin list_topics"})  # why brokers do not answer

    def place(self) -> str:
        return f"course-{next(_topics)}"

    def sink(self, place: str) -> Sink:
        address = self._broker.address
        return of(f"kafka://{address}/{place}?partitions={PARTITIONS}&late={place}-late")

    def read(self, world: World, place: str) -> Found:
        found = {"rows": self._records(place), "late": self._records(f"{place}-late")}
        return {
            "rows": [repr(plain(row)) for row in found["rows"]],
            "late": [repr((row["at"], row["route"])) for row in found["late"]],
        }

    def _records(self, topic: str) -> list[dict[str, Any]]:
        if topic not in self._admin.list_topics(timeout=PATIENCE_S).topics:
            return []
        return [record.row for record in in_order(committed(self._broker, topic))]

    def forget(self, place: str) -> None:
        """Delete the marker, as brokers do when it has not been written for long."""
        group = committed(self._broker, place)[0].headers["tidegate.writer"].decode()
        (done,) = self._admin.delete_consumer_groups([group]).values()
        done.result(PATIENCE_S)


class KafkaSourceCourses(OnKafka, SourceConnector):
    """A topic of two partitions as a stream, to which records are added between lives."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self._producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})

    def new_place(self) -> str:
        topic = f"rides-{next(_topics)}"
        (made,) = self._admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values()
        made.result(PATIENCE_S)
        return topic

    def add(self, place: str, part: list[dict[str, Any]]) -> None:
        for number, row in enumerate(part):
            value = json.dumps({**row, "at": row["at"].isoformat()})
            self._producer.produce(place, value, partition=number % PARTITIONS)
        assert self._producer.flush(PATIENCE_S) == 0

    @contextmanager
    def entered(self) -> Iterator[None]:
        with super().entered(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(fetch, "_idle", {})
            yield

    def query(self, session: Any, place: str) -> Any:
        for idle in fetch._idle.values():  # a process that begins has no consumers
            for held in idle.consumers:
                held.consumer.close()
        fetch._idle.clear()
        return super().query(session, place)

    def uri(self, place: str) -> str:
        return f"kafka://{self._broker.address}/{place}?group=watched"
