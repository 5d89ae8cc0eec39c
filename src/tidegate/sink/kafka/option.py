"""Reads the parameters of an output's URI, and refuses each mistake by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from tidegate.calendar.duration import duration_text, duration_us
from tidegate.errors import OptionError, QueryError, near
from tidegate.kafka.address import KafkaAddress
from tidegate.kafka.schema_registry import check_url
from tidegate.sink.address import Address
from tidegate.sink.folder.form import NONFINITE, REFUSE
from tidegate.sink.kafka.record import AVRO, FORMATS

PARAMETERS = (
    "format registry subject nonfinite key partition partitions append upsert late rejected timeout"
).split()
SIDES = ("late", "rejected")
TIMEOUT_MS = 60_000
"""How long a transaction may take. When its writer dies, readers may have to wait this long for the
records behind it, unless another run continues before."""

_INSTEAD = {
    "protobuf": "Values in Protobuf are read, and not written. Write format=avro and "
    "registry=http://localhost:8081, which registers a schema of the results, or format=json."
}
"""What to write instead of a value that users are likely to try."""


@dataclass(frozen=True)
class KafkaOptions:
    """How rows become records, and where they go.

    `partition` takes all rows. Without it, the `key` decides the partition, or rows go round-robin
    where there is no key. `partitions` is the number of partitions of a topic that we create.
    `sides` maps side outputs to their topics. `registry` is the address of the schema registry that
    Avro needs; `subject` is the name of the schema there, None for the topic's default.
    """

    format: str = "json"
    registry: str | None = None
    subject: str | None = None
    nonfinite: str = REFUSE
    key: tuple[str, ...] = ()
    partition: int | None = None
    partitions: int | None = None
    append: bool = False
    upsert: bool = False
    sides: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int = TIMEOUT_MS


def parsed(address: Address, output: str | None) -> tuple[KafkaAddress, KafkaOptions]:
    """The topic of an output and its options; one with a name has the topic `TOPIC-NAME`."""
    query = f"?{urlencode(address.parameters)}" if address.parameters else ""
    uri = f"{address.scheme}:{address.place}{query}"
    found = KafkaAddress.parse(uri, address.where, OptionError, PARAMETERS)
    options = _options(found.parameters, address.where)
    where = f"{address.where} {found.topic}" if output is None else f"{address.where} of {output}"
    topic = found.topic if output is None else f"{found.topic}-{output}"
    return replace(found, topic=topic, where=where), options


def _options(given: Mapping[str, str], where: str) -> KafkaOptions:
    options = KafkaOptions(
        format=_one_of(given, "format", FORMATS, FORMATS[0], where),
        registry=check_url(given["registry"], where) if "registry" in given else None,
        subject=given.get("subject"),
        nonfinite=_one_of(given, "nonfinite", NONFINITE, REFUSE, where),
        key=tuple(name.strip() for name in given["key"].split(",")) if "key" in given else (),
        partition=_number(given, "partition", 0, where),
        partitions=_number(given, "partitions", 1, where),
        append=_one_of(given, "append", ("no", "yes"), "no", where) == "yes",
        upsert=_one_of(given, "upsert", ("no", "yes"), "no", where) == "yes",
        sides={side: given[side] for side in SIDES if side in given},
        timeout_ms=_timeout(given.get("timeout"), where),
    )
    if options.format == AVRO and options.registry is None:
        remedy = "Write registry=http://localhost:8081 behind the ? of the URI."
        raise OptionError(where, "values in Avro need a schema registry", "none", remedy)
    for name in ("registry", "subject"):
        if options.format != AVRO and name in given:
            must = f"{name} is for values in Avro"
            got, remedy = f"format={options.format}", f"Write format=avro, or leave {name} out."
            raise OptionError(where, must, got, remedy)
    if options.upsert and options.key:
        must = "upsert=yes writes the key that follows from the query"
        raise OptionError(where, must, f"key={given['key']}", "Leave key out.")
    if options.nonfinite != REFUSE and options.format != "json":
        must = "nonfinite is for JSON, which has no NaN and no infinities"
        raise OptionError(where, must, f"format={options.format}", "Leave nonfinite out.")
    if options.key and options.partition is not None:
        must = "rows go to one partition, or to that of their key"
        raise OptionError(where, must, "key and partition", "Leave one of them out.")
    return options


def _one_of(
    given: Mapping[str, str], name: str, known: tuple[str, ...], unless: str, where: str
) -> str:
    value = given.get(name, unless)
    if value not in known:
        must = f"{name} must be {' or '.join(known)}"
        remedy = _INSTEAD.get(value) or near(value, known)
        raise OptionError(where, must, f"{name}={value}", remedy)
    return value


def _number(given: Mapping[str, str], name: str, least: int, where: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        must = f"{name} must be a whole number from {least}"
        raise OptionError(where, must, f"{name}={text}", f"Write {name}={max(least, 6)}.")
    return int(text)


def _timeout(text: str | None, where: str) -> int:
    if text is None:
        return TIMEOUT_MS
    try:
        us = duration_us(text, where)
    except QueryError as error:
        must = f"timeout: {error.requirement}"
        raise OptionError(where, must, text, "Write for example timeout=5m.") from error
    if us < 1_000_000:
        must = "timeout must be a second or more"
        raise OptionError(where, must, duration_text(us), "Write for example timeout=5m.")
    return us // 1000
