"""Makes clients of Kafka; imports the library when the first one is needed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tidegate.errors import UnavailableError, UserError
from tidegate.kafka.address import KafkaAddress
from tidegate.kafka.setting import read_settings

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient

ANSWER_S = 15.0
"""How long brokers may take to answer a request before they count as unreachable."""

SHOWN_S = 1.0
"""How long a broker may not know a topic that another client has just created."""

_COMPLAINT_S = 2.0

LOG = logging.getLogger("tidegate.kafka")
"""The log lines of librdkafka, for example that brokers are gone and are back."""
LOG.addHandler(logging.NullHandler())

_COMMON = {
    "log.connection.close": False,
    "reconnect.backoff.max.ms": 1000,
    # The other strategy drops all brokers and connects anew when the last connection is cut. In
    # librdkafka 2.16 its main thread can then wait for ever, so that no call returns in time.
    "metadata.recovery.strategy": "none",
}


def library(where: str) -> ModuleType:
    """The module `confluent_kafka`; says what to install where it is missing."""
    try:
        import confluent_kafka
    except ImportError:
        remedy = "Run pip install 'tidegate[kafka]'."
        raise UnavailableError(where, "needs confluent-kafka", "none", remedy) from None
    return confluent_kafka


def make_consumer(address: KafkaAddress, error: type[UserError], **own: Any) -> Consumer:
    """A consumer; `own` are its settings with underscores for dots: group_id="g"."""
    made: Consumer = _made(library(address.where).Consumer, address, error, own)
    return made


def make_producer(address: KafkaAddress, error: type[UserError], **own: Any) -> Producer:
    """A producer, as `make_consumer` makes a consumer."""
    made: Producer = _made(library(address.where).Producer, address, error, own)
    return made


def make_admin(address: KafkaAddress, error: type[UserError], **own: Any) -> AdminClient:
    """A client for requests about topics, as `make_consumer` makes a consumer."""
    library(address.where)
    from confluent_kafka.admin import AdminClient

    made: AdminClient = _made(AdminClient, address, error, own)
    return made


class Complaints:
    """The newest error that a client reported on its own: no connection, a refused password.

    `take` is the client's `error_cb`. Where brokers do not answer, this says why. The client
    reports "all brokers down" after each such reason; that does not replace the reason.
    """

    def __init__(self) -> None:
        self.newest: str | None = None

    def take(self, error: Any) -> None:
        if self.newest is None or error.name() != "_ALL_BROKERS_DOWN":
            self.newest = str(error.str())


def complaint(address: KafkaAddress, error: type[UserError]) -> str | None:
    """Why brokers do not answer; None where no reason shows. Makes a client of its own to ask."""
    complaints = Complaints()
    admin = make_admin(address, error, error_cb=complaints.take)
    with suppress(library(address.where).KafkaException):
        admin.list_topics(timeout=_COMPLAINT_S)
    admin.poll(0)
    return complaints.newest


def reason(error: Exception) -> str:
    """The library's words for a failure, in one line without its codes."""
    said = error.args[0] if error.args else error
    return str(said.str()) if hasattr(said, "str") else str(said)


def _made(
    kind: Callable[[dict[str, Any]], Any],
    address: KafkaAddress,
    error: type[UserError],
    own: dict[str, Any],
) -> Any:
    settings = _settings(address, error, own)
    try:
        return kind(settings)
    except (library(address.where).KafkaException, ValueError, TypeError) as failure:
        must = "the settings of the client must be usable"
        raise error(address.where, must, reason(failure)) from None


def _settings(address: KafkaAddress, error: type[UserError], own: dict[str, Any]) -> dict[str, Any]:
    given = read_settings(address.config, address.where, error)
    named = {n if n == "error_cb" else n.replace("_", "."): v for n, v in own.items()}
    servers = {"bootstrap.servers": address.servers, "logger": LOG}
    return {"client.id": "tidegate", **_COMMON, **given, **named, **servers}
