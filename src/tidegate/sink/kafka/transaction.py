"""Writes batches to topics, each in one transaction with the marker that says it is there.

Two things decide which run may write. The brokers let the newest producer of a transactional id
write, abort the open transaction of the producer before it, and refuse what that one still sends.
And the marker names the owner of the run that wrote it, so a run that another one has replaced does
not begin again.

The answer to a commit can be lost. Then nobody knows whether the transaction was committed. The way
out is the same as after a crash: make a new producer of the same id, for which the brokers first
end what is open or half committed; then read the marker, which says whether the batch is there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from tidegate import schedule
from tidegate.batch import BatchId
from tidegate.errors import OptionError, SinkError
from tidegate.kafka.address import KafkaAddress
from tidegate.kafka.client import ANSWER_S, library, make_producer, reason
from tidegate.sink.kafka.marker import Marker, marked_topics, read_marker
from tidegate.sink.kafka.topic import ANSWERS

if TYPE_CHECKING:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient

T = TypeVar("T")

PATIENCE_S = 120.0
"""How long a batch may wait for brokers that do not answer, before the run ends."""

_REFRESH_S = 24 * 3600.0
"""After how long a marker is written again. Brokers forget one after a week, unless configured."""

_AGAIN_S = 0.1
_MOST_WAITING = 250_000
"""Records that the producer queues at most: at a full queue each record costs twice as much."""

_LARGEST_RECORD = 100_000_000
"""No limit of our own: the brokers decide how large a record may be."""

_log = logging.getLogger(__name__)

_ALLOW = "Allow this user to write to the topic, and to use transactional ids and groups that begin"
_HOPELESS: Mapping[str, str] = {
    "MSG_SIZE_TOO_LARGE": "Set max.message.bytes of the topic higher, then run again.",
    "RECORD_LIST_TOO_LARGE": "Set max.message.bytes of the topic higher, then run again.",
    "INVALID_RECORD": "A compacted topic takes no records without a key: set its cleanup.policy to "
    "delete, then run again.",
    "INVALID_TRANSACTION_TIMEOUT": "Choose a shorter timeout=, or set transaction.max.timeout.ms "
    "of the brokers higher, then run again.",
    **dict.fromkeys(
        (
            "TOPIC_AUTHORIZATION_FAILED",
            "GROUP_AUTHORIZATION_FAILED",
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
            "CLUSTER_AUTHORIZATION_FAILED",
        ),
        f"{_ALLOW} with tidegate-; then run again.",
    ),
}
"""What to do about each error that will not go away by itself, by its name."""


class Transactions:
    """The transactions of one output, in the order of its batches, by one producer at a time.

    `name` is the transactional id and the group of the marker. `owner` is the number of the run.
    `absent`, an argument of the calls, gives the marker to assume where the brokers have none; an
    error it raises ends the run.
    """

    def __init__(
        self, address: KafkaAddress, admin: AdminClient, name: str, owner: int, timeout_ms: int
    ) -> None:
        self._address = address
        self._admin = admin
        self._name = name
        self._owner = owner
        self._timeout_ms = timeout_ms
        kafka = library(address.where)
        self._failure = kafka.KafkaException
        # This consumer only gives the metadata of the group. It never connects to a broker.
        consumer = kafka.Consumer({"group.id": name, "log_level": 2})
        self._group = consumer.consumer_group_metadata()
        consumer.close()
        self._producer: Producer | None = None
        self._marker = Marker(-1, owner)
        self._marked_at: float | None = None

    def claim(self, absent: Callable[[], Marker]) -> Marker:
        """Become the one writer of this output; the marker of the batch that was published last.

        Also writes the marker again where it is a day old. Costs nothing otherwise.
        """
        return self._patiently("the output must be claimed", lambda: self._claimed(absent))

    def publish(
        self, batch: BatchId, fill: Callable[[Producer], None], absent: Callable[[], Marker]
    ) -> None:
        """Write a batch unless it is there; `fill` hands its records to the producer."""

        def work() -> None:
            if self._claimed(absent).batch < batch:
                assert self._producer is not None
                self._transact(self._producer, Marker(batch, self._owner), fill)

        self._patiently(f"batch {batch}, which is committed, must be written", work)

    def close(self) -> None:
        """Drop the producer, with the records it has not sent.

        An open transaction is not aborted here, because that could wait for brokers that are gone.
        The next producer of this output ends it, or its timeout does.
        """
        self._producer = None

    def _claimed(self, absent: Callable[[], Marker]) -> Marker:
        if self._producer is None:
            # Before we fence anybody: where the marker names a later run, we must not take the
            # transactional id away from it. This read does not wait for open transactions.
            before = marked_topics(self._admin, self._name)
            self._check_owner(before.get(self._address.topic))
            producer = make_producer(
                self._address,
                OptionError,
                transactional_id=self._name,
                transaction_timeout_ms=self._timeout_ms,
                message_max_bytes=_LARGEST_RECORD,
                queue_buffering_max_messages=_MOST_WAITING,
                partitioner="murmur2",
                compression_type="lz4",
                retry_backoff_ms=10,  # a transaction waits this long until the one before is shown
            )
            self._producer = producer
            limit_s = max(ANSWER_S, self._timeout_ms / 1000)
            # Without a connection librdkafka would ask for the coordinator after half a second.
            producer.list_topics(self._address.topic, limit_s)
            producer.init_transactions(limit_s)
            # Now all earlier transactions have ended and no other producer can begin one, so the
            # marker that is read here is final. It may still name a later run: checked once more.
            found = read_marker(self._admin, self._address, self._name)
            self._check_owner(found)
            self._marker = found or self._unmarked(absent)
        elif schedule.current().clock.now() - (self._marked_at or 0) < _REFRESH_S:
            return self._marker
        self._transact(self._producer, Marker(self._marker.batch, self._owner), lambda _: None)
        return self._marker

    def _transact(
        self, producer: Producer, marker: Marker, fill: Callable[[Producer], None]
    ) -> None:
        limit_s = self._timeout_ms / 1000
        producer.begin_transaction()
        fill(producer)
        position = marker.position(self._address.topic)
        producer.send_offsets_to_transaction([position], self._group, limit_s)
        producer.commit_transaction(limit_s)
        self._marker, self._marked_at = marker, schedule.current().clock.now()

    def _unmarked(self, absent: Callable[[], Marker]) -> Marker:
        """The marker to assume where there is none; an error once this run has written one."""
        if self._marked_at is None:
            return absent()
        raise SinkError(
            self._address.where,
            f"the group {self._name} must keep what this run has committed to it",
            "nothing",
            "Leave this group alone, and run again: the records say what was published.",
        )

    def _check_owner(self, found: Marker | None) -> None:
        if found is not None and found.owner > self._owner:
            raise SinkError(
                self._address.where,
                "must be written by one run at a time",
                f"run {found.owner} on the same checkpoint, where this one is {self._owner}",
                "Let that one go on, or stop it and start again.",
            )

    def _patiently(self, must: str, work: Callable[[], T]) -> T:
        """Try until it is done, with a new producer each time, for at most PATIENCE_S."""
        clock = schedule.current().clock
        until = clock.now() + PATIENCE_S
        while True:
            try:
                return work()
            except (self._failure, TimeoutError) as error:
                self.close()
                remedy = _HOPELESS.get(_error_name(error))
                if remedy is None and clock.now() < until:
                    _log.warning(
                        "%s: %s; trying again: %s", self._address.where, must, reason(error)
                    )
                    clock.sleep(_AGAIN_S)
                    continue
                said = remedy or f"{ANSWERS} Then run again: what is there is not written twice."
                raise SinkError(self._address.where, must, reason(error), said) from error
            except BaseException:
                self.close()
                raise


def _error_name(error: Exception) -> str:
    said: Any = error.args[0] if error.args else None
    return str(said.name()) if hasattr(said, "name") else ""
