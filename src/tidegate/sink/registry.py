"""Which sinks there are: a line for each scheme, between a URI and the sink of its place."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.errors import OptionError, UnavailableError, near
from tidegate.sink.address import Address
from tidegate.sink.console import ConsoleSink
from tidegate.sink.files import FileSink
from tidegate.sink.memory import MemorySink
from tidegate.sink.protocol import Sink

Factory = Callable[[Address, str | None], Sink]
"""Makes the sink of an address for an output, by its name where a query has several or names its
only one. Refuses what the address says wrong, and touches nothing: that is for `Sink.open`."""

SINKS: dict[str, Factory] = {
    "file": FileSink.at,
    "console": ConsoleSink.at,
    "memory": MemorySink.at,
}

IN_PROGRAM = ("memory",)
"""Schemes whose results only a program can look at, so that a command has no use for them."""

_COPY = "Write to a folder, and copy its batch=NNNNNNNN folders there."
_CALL = "In a program, tg.sink.call(function) hands over every committed batch."
_LATER = {
    **dict.fromkeys(("s3", "s3a", "gs", "gcs", "abfs", "abfss", "hdfs"), _COPY),
    **dict.fromkeys(("kafka", "postgres", "postgresql"), _CALL),
}
"""What to do instead, for schemes that people expect and that have no sink yet."""


def of(uri: str, output: str | None = None, where: str = "sink") -> Sink:
    """The sink that a URI or a plain path names: `out`, `file:///data/out?format=csv`, `console:`.

    `output` is the name of the output it is for; files of a named output are in a folder of its
    name. Raises OptionError for a URI that says nothing usable; nothing is opened or made yet.
    """
    return at(Address.parse(uri, where), output)


def as_sink(given: Sink | str) -> Sink:
    """A sink as a program gives it: itself, or by its URI."""
    if isinstance(given, str):
        return of(given)
    if not isinstance(given, Sink):
        raise OptionError(
            "sink",
            "must be a URI, or have what tidegate.sink.Sink has",
            repr(given),
            "Use tg.sink.of(uri), tg.sink.files(path) or a sink of your own.",
        )
    return given


def at(address: Address, output: str | None = None) -> Sink:
    """The sink of an address."""
    if address.scheme in SINKS:
        return SINKS[address.scheme](address, output)
    if address.scheme in _LATER:
        raise UnavailableError(
            address.where,
            f"sinks of {address.scheme}: are not available yet",
            address.text,
            f"{_LATER[address.scheme]} There are: {', '.join(SINKS)}.",
        )
    remedy = near(address.scheme, SINKS)
    if not address.place.startswith("//"):
        remedy += f" A folder of this name is ./{address.text}."
    raise OptionError(
        address.where, "must be a path or of a known scheme", f"{address.scheme}:", remedy
    )
