"""Opens a history and a topic as one stream, with the columns of the history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tidegate.connector import Connector, Source
from tidegate.errors import SourceError, UserError
from tidegate.schema import type_name
from tidegate.source.backfill.address import FROM_HISTORY, BackfillAddress
from tidegate.source.backfill.history import HistoryConnector
from tidegate.source.backfill.leg import LegSource
from tidegate.source.backfill.seam import OffsetSeam, Seam, TimeSeam, WrittenSeam
from tidegate.source.kafka.column import RECORD_COLUMNS
from tidegate.source.message.registry import value_format
from tidegate.source.subscription import MESSAGE_OPTIONS, Reading

Options = tuple[tuple[str, Any], ...]

OpenPlace = Callable[[str, bool, Reading], Connector]
"""Opens a URI: whether it is followed, and how it is read."""


class TopicConnector(Connector):
    """The partitions of a topic, from where a history ends."""

    def __init__(self, inner: Connector, seam: Seam) -> None:
        self._inner, self._seam = inner, seam
        self.schema = inner.schema
        self._legs: dict[str, LegSource] = {}

    @property
    def arrives(self) -> bool:
        return self._inner.arrives

    def discover(self) -> Sequence[Source]:
        for source in self._inner.discover():
            if source.id not in self._legs:
                span = self._seam.topic_span
                self._legs[source.id] = LegSource(source, span, self._seam.begin)
        return list(self._legs.values())

    def live(self) -> bool:
        return self._inner.live()

    def take_as_of_now(self) -> None:
        self._inner.take_as_of_now()

    def expected_s(self) -> float | None:
        return self._inner.expected_s()

    def committed(self, positions: Mapping[str, int]) -> None:
        self._inner.committed(positions)

    def close(self) -> None:
        self._inner.close()


class BackfillConnector(Connector):
    """A history and a topic; a run lets them in one after the other."""

    def __init__(self, history: HistoryConnector, topic: TopicConnector) -> None:
        self._history, self._topic = history, topic
        self.schema = history.schema

    @staticmethod
    def at(
        address: BackfillAddress,
        where: str,
        time: str | None,
        follow: bool,
        reading: Reading,
        open_place: OpenPlace,
    ) -> BackfillConnector:
        """Open both. The topic must have the columns of the history, and no others."""
        history = HistoryConnector(_open_history(address.history, reading, open_place))
        _check_record_columns(history.schema, where)
        of_values = _split(reading)[0]
        topic = open_place(address.topic_alone, follow, Reading(history.schema, of_values))
        _check_columns(history.schema, topic.schema, where)
        seam: Seam = WrittenSeam()
        if address.until_us is not None:
            seam = TimeSeam(address.until_us)
        elif address.start == FROM_HISTORY:
            seam = OffsetSeam(history, time, where)
        history.span = seam.history_span
        return BackfillConnector(history, TopicConnector(topic, seam))

    @property
    def types_from(self) -> str:
        return self._history.types_from

    def legs(self) -> Sequence[Connector]:
        return self._history, self._topic

    def discover(self) -> Sequence[Source]:
        return [*self._history.discover(), *self._topic.discover()]

    def first_sources(self, count: int) -> Sequence[Source]:
        return self._history.first_sources(count)

    def live(self) -> bool:
        return self._topic.live()

    def take_as_of_now(self) -> None:
        self._topic.take_as_of_now()


def _split(reading: Reading) -> tuple[Options, Options]:
    """The options that the topic's values take, and the others, which only files may take."""
    taken = ("format", *value_format(reading.get("format")).options)
    of_values = tuple(pair for pair in reading.options if pair[0] in taken)
    return of_values, tuple(pair for pair in reading.options if pair[0] not in taken)


def _open_history(uri: str, reading: Reading, open_place: OpenPlace) -> Connector:
    """Open the history. An option that both values and files know applies to both, if it can."""
    of_values, others = _split(reading)
    shared = tuple(pair for pair in of_values if pair[0] not in MESSAGE_OPTIONS)
    if shared:
        try:
            return open_place(uri, False, Reading(reading.schema, tuple(sorted(others + shared))))
        except UserError:
            shared = ()  # for the values alone; a real mistake is raised again below
    return open_place(uri, False, Reading(reading.schema, others))


def _check_record_columns(history: pa.Schema, where: str) -> None:
    """Refuse columns with the name of a record column and another type."""
    for field in history:
        type_ = RECORD_COLUMNS.get(field.name, field.type)
        if field.type != type_:
            name = type_name(type_).upper()
            raise SourceError(
                where,
                f"column {field.name} of the history must be {name}, as Kafka's records have it",
                type_name(field.type).upper(),
                f"Write the history with CAST({field.name} AS {name}), or under another name.",
            )


def _check_columns(history: pa.Schema, topic: pa.Schema, where: str) -> None:
    for field in history:
        found = topic.field(field.name).type if field.name in topic.names else None
        if found != field.type:
            raise SourceError(
                where,
                f"the topic must have the column {field.name} as the history has it, "
                f"{type_name(field.type)}",
                "no such column" if found is None else type_name(found),
                "Give both the same columns.",
            )
    more = [name for name in topic.names if name not in history.names]
    if more:
        raise SourceError(
            where,
            "the topic must have no other columns than the history",
            more[0],
            "Leave it out of meta, or add it to the history.",
        )
