"""Looks up the topics of an output, makes missing ones on request, and refuses unfit ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import Future
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tidegate import schedule
from tidegate.errors import OptionError, SinkError
from tidegate.kafka.address import KafkaAddress
from tidegate.kafka.client import ANSWER_S, SHOWN_S, complaint, library, reason
from tidegate.sink.kafka.option import KafkaOptions

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_LOOK_AGAIN_S = 0.02
_SILENT = ("_TIMED_OUT", "_TRANSPORT")
"""Errors by which the client says that no answer came."""

ANSWERS = "See that the brokers run within reach of this machine, and the credentials."


class Topics:
    """The topics of an output: the one for its rows, and those of its side outputs.

    Only `make` creates topics. Every call costs at least one request.
    """

    def __init__(self, address: KafkaAddress, options: KafkaOptions, admin: AdminClient) -> None:
        self._address = address
        self._options = options
        self._names = list(dict.fromkeys([address.topic, *options.sides.values()]))
        self._admin = admin
        self.partitions: dict[str, int] = {}
        """The number of partitions of each topic that exists."""

    def check(self) -> None:
        """Refuse topics that are missing or cannot take the rows; called before any is made."""
        self._look_up()
        where, options = self._address.where, self._options
        are_made = options.partitions is not None or self._are_all_there() or self._are_made()
        if not are_made:
            self._look_until(SHOWN_S)
        for name in self._names:
            there = self.partitions.get(name)
            if there is None and not are_made:
                raise OptionError(
                    where,
                    f"the topic {name} must exist",
                    "none of this name",
                    "Create it, or let it be made by partitions=6 after the ? of the URI.",
                )
            if there is not None and options.partitions not in (None, there):
                must = f"the topic {name} must have the partitions that are asked for"
                got = f"{there} where partitions={options.partitions}"
                raise OptionError(where, must, got, "Leave partitions out: the topic exists.")
        count = self.partitions.get(self._address.topic, options.partitions or 0)
        if options.partition is not None and options.partition >= count:
            must = f"partition must be one of the {count} of the topic"
            got, remedy = f"partition={options.partition}", f"Choose one from 0 to {count - 1}."
            raise OptionError(where, must, got, remedy)

    def make(self) -> None:
        """Create the topics that are missing.

        The brokers' defaults decide the replication and, unless `partitions` says it, the number of
        partitions.
        """
        missing = [name for name in self._names if name not in self.partitions]
        if not missing:
            return
        from confluent_kafka.cimpl import NewTopic

        for name in missing:
            compact = self._options.upsert and name == self._address.topic
            config = {"cleanup.policy": "compact"} if compact else {}
            new = NewTopic(name, self._options.partitions or -1, -1, config=config)
            try:
                for made in self._admin.create_topics([new]).values():
                    made.result(ANSWER_S)
            except library(self._address.where).KafkaException as error:
                if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                    must = f"the topic {name} must be made"
                    raise SinkError(self._address.where, must, reason(error), ANSWERS) from error
        self._look_until(ANSWER_S)
        if not self._are_all_there():
            must = f"the topic {missing[0]} must be there once it is made"
            raise SinkError(self._address.where, must, "brokers that do not show it", ANSWERS)

    def _are_all_there(self) -> bool:
        return self.partitions.keys() >= set(self._names)

    def _look_until(self, limit_s: float) -> None:
        """Look again until all topics are there, for at most `limit_s`."""
        clock = schedule.current().clock
        until = clock.now() + limit_s
        while not self._are_all_there() and clock.now() <= until:
            clock.sleep(_LOOK_AGAIN_S)
            self._look_up()

    def _are_made(self) -> bool:
        """Whether the brokers create topics on first use.

        False where they do not tell, and where the options name one partition of an existing topic.
        """
        if self._options.partition is not None:
            return False
        admin: Any = import_module("confluent_kafka.admin")
        number = next(iter(self._admin.list_topics(timeout=ANSWER_S).brokers))
        resource = admin.ConfigResource(admin.ResourceType.BROKER, str(number))
        (answer,) = self._admin.describe_configs([resource]).values()
        found = self._asked(answer, but=("CLUSTER_AUTHORIZATION_FAILED",))
        return found is not None and found["auto.create.topics.enable"].value == "true"

    def is_empty(self) -> bool:
        """Whether the topic of the rows holds no record, or does not exist."""
        topic, kafka = self._address.topic, library(self._address.where)
        places = [kafka.TopicPartition(topic, n) for n in range(self.partitions.get(topic, 0))]
        return self._ends(places, "earliest") == self._ends(places, "latest")

    def _ends(self, places: list[Any], which: str) -> list[int]:
        specs: Any = import_module("confluent_kafka.admin").OffsetSpec
        asked = self._admin.list_offsets(dict.fromkeys(places, getattr(specs, which)()))
        return [self._asked(asked[place]).offset for place in places]

    def _look_up(self) -> None:
        from confluent_kafka import TopicCollection

        asked: Mapping[str, Future[Any]] = self._admin.describe_topics(
            TopicCollection(self._names), request_timeout=ANSWER_S
        )
        self.partitions = {}
        for name, future in asked.items():
            found = self._asked(future, but=("UNKNOWN_TOPIC_OR_PART",))
            if found is not None:
                self.partitions[name] = len(found.partitions)

    def _asked(self, future: Future[Any], but: Collection[str] = ()) -> Any:
        """The answer to a question; None for an error whose name is in `but`."""
        try:
            return future.result(ANSWER_S)
        except library(self._address.where).KafkaException as error:
            if error.args[0].name() in but:
                return None
            got = reason(error)
            if error.args[0].name() in _SILENT:
                got = complaint(self._address, OptionError) or got
        except TimeoutError:
            got = complaint(self._address, OptionError) or f"no answer for {ANSWER_S:.0f} s"
        must = f"the brokers at {self._address.servers} must answer"
        raise OptionError(self._address.where, must, got, ANSWERS)
