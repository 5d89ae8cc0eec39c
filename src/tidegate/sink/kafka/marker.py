"""Reads the marker of an output: which of its batches was published last, and by which run.

The marker is an offset that a consumer group has committed for partition 0 of the topic. Nobody
consumes in this group. A transaction commits the marker with the rows of its batch, so both are
there or neither. Brokers forget a marker that was not written for a while
(`offsets.retention.minutes`, a week unless set), so a run writes it again each day.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate import schedule
from tidegate.kafka.address import KafkaAddress
from tidegate.kafka.client import ANSWER_S

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, TopicPartition
    from confluent_kafka.admin import AdminClient

_OWNER = "owner="
_LOOK_AGAIN_S = 0.02
_PASSING = (
    "UNSTABLE_OFFSET_COMMIT",
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "NOT_COORDINATOR",
)
"""Errors that pass: the broker will know the answer in a moment."""


@dataclass(frozen=True)
class Marker:
    """The newest published batch, -1 before the first one, and the number of the run (owner)."""

    batch: int
    owner: int

    def position(self, topic: str) -> TopicPartition:
        """The offset to commit for this marker: the number of the batch that comes next."""
        from confluent_kafka import TopicPartition

        return TopicPartition(topic, 0, self.batch + 1, metadata=f"{_OWNER}{self.owner}")

    @staticmethod
    def of(position: TopicPartition) -> Marker | None:
        """The marker of a committed position; None where no offset is committed."""
        if position.offset < 0:
            return None
        owner = (position.metadata or "").removeprefix(_OWNER)
        return Marker(position.offset - 1, int(owner) if owner.isdigit() else 0)


def read_marker(admin: AdminClient, address: KafkaAddress, group: str) -> Marker | None:
    """The marker of an output; None where there is none. Waits for transactions that are ending."""
    from confluent_kafka import TopicPartition

    (found,) = _positions(admin, group, [TopicPartition(address.topic, 0)])
    return Marker.of(found)


def marked_topics(admin: AdminClient, group: str) -> dict[str, Marker]:
    """The markers that a group has, by topic, without those of transactions that have not ended."""
    found = {place.topic: Marker.of(place) for place in _positions(admin, group, None)}
    return {topic: marker for topic, marker in found.items() if marker is not None}


def _positions(
    admin: AdminClient, group: str, places: list[TopicPartition] | None
) -> list[TopicPartition]:
    """What a group has committed: for these places, stable offsets only; for all with None."""
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException

    clock = schedule.current().clock
    until = clock.now() + ANSWER_S
    while True:
        try:
            failed = _loading(admin, group)
            if failed is None:
                asked = admin.list_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(group, places)],
                    require_stable=places is not None,
                    request_timeout=ANSWER_S,
                )
                found: list[TopicPartition] = asked[group].result(ANSWER_S).topic_partitions
                failed = next((place.error for place in found if place.error is not None), None)
                if failed is None:
                    return found
        except KafkaException as error:
            failed = error.args[0]
        if failed.name() not in _PASSING or clock.now() > until:
            raise KafkaException(failed)
        clock.sleep(_LOOK_AGAIN_S)


def _loading(admin: AdminClient, group: str) -> KafkaError | None:
    """Why the coordinator of a group cannot tell its offsets yet; None where it can.

    Asked before the offsets themselves: an admin client of librdkafka 2.16 that is told by the
    answer to those that there is no coordinator looks for its consumer group, which it has not, and
    ends the process (`rd_kafka_handle_OffsetFetch`).
    """
    from confluent_kafka import KafkaException

    asked = admin.describe_consumer_groups([group], request_timeout=ANSWER_S)
    try:
        asked[group].result(ANSWER_S)
    except KafkaException as error:
        failed: KafkaError = error.args[0]
        return failed if failed.name() in _PASSING else None
    return None
