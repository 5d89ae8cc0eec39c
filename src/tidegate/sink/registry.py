"""Lists the sinks by the scheme of their URIs."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

from tidegate.errors import OptionError, near
from tidegate.remote.scheme import REMOTE, SECOND_NAMES
from tidegate.sink.address import FILE, Address
from tidegate.sink.protocol import Sink

SINKS: dict[str, str] = {
    "file": "tidegate.sink.folder.files:FileSink",
    "console": "tidegate.sink.console:ConsoleSink",
    "memory": "tidegate.sink.memory:MemorySink",
    "kafka": "tidegate.sink.kafka.sink:KafkaSink",
    **dict.fromkeys(REMOTE, "tidegate.sink.folder.remote:RemoteSink"),
    "postgresql": "tidegate.sink.postgres.sink:PostgresSink",
    "postgres": "tidegate.sink.postgres.sink:PostgresSink",
    "delta": "tidegate.sink.lake.delta:DeltaSink",
    "delta+s3": "tidegate.sink.lake.delta:DeltaSink",
    "iceberg": "tidegate.sink.lake.iceberg:IcebergSink",
}
"""The class of sinks for each scheme. Its `at(address, output)` makes one; `output` is the name of
an output, None where the query has only one without a name. `at` refuses a wrong address and
touches nothing: that is for `Sink.open`. Modules are imported on first use, so a sink may need a
library that others do without."""

IN_PROGRAM = ("memory",)
"""Schemes whose results only a program can read, so the command line refuses them."""


def of(uri: str, output: str | None = None) -> Sink:
    """The sink that a URI or a plain path names: `out`, `file:///data/out?format=csv`, `console:`.

    `output` is the name of the output it is for, if it has one; files are then in a folder of that
    name. Raises OptionError for a URI that no sink can be made of; nothing is opened or made yet.
    """
    return at(Address.parse(uri, "sink"), output)


def folder_of(path: str, where: str) -> str:
    """The path of a folder that a program names; a URI of another place is refused.

    Written as a path, `s3://bucket` would be a folder `s3:` in the present one.
    """
    address = Address.of_folder(path, where)
    if address.scheme in REMOTE:
        remedy = "Use tg.sink.files(uri) or tg.sink.of(uri)."
        raise OptionError(where, "must be a folder of this machine", path, remedy)
    if address.scheme in SINKS and address.scheme != FILE:
        must, remedy = "must be a folder of this machine", "Use tg.sink.of(uri)."
        raise OptionError(where, must, f"a URI of {address.scheme}:", remedy)
    if address.scheme != FILE:
        raise _unknown(address, [FILE])
    address.check_parameters()
    return address.place


def as_sink(given: Sink | str) -> Sink:
    """The sink that a program gives, itself or by its URI."""
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


def at(address: Address, output: str | None = None, known: Collection[str] = SINKS) -> Sink:
    """The sink of an address; `known` are the schemes that the caller allows."""
    sink: Sink = class_at(address, known).at(address, output)
    return sink


def class_at(address: Address, known: Collection[str] = SINKS) -> Any:
    """The class of the sinks of an address."""
    if address.scheme not in known:
        raise _unknown(address, known)
    module, _, name = SINKS[address.scheme].partition(":")
    return getattr(import_module(module), name)


def _unknown(address: Address, known: Collection[str]) -> OptionError:
    scheme, named = address.scheme, [k for k in known if k not in SECOND_NAMES]
    remedy = near(scheme, named, alike=0.5)
    if not address.place.startswith("//"):
        remedy += f" A folder of this name is ./{address.text}."
    return OptionError(address.where, "must be a path or of a known scheme", f"{scheme}:", remedy)
