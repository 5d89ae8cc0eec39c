"""What a query reads, opened: between the URIs and connectors of its streams and the loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tidegate.driver.options import RunOptions
from tidegate.errors import OptionError
from tidegate.query.node import StreamDef
from tidegate.source.protocol import Connector
from tidegate.source.uri import open_uri
from tidegate.state.store import Store

IN_PROGRAM = ("memory:", "frame:")
"""How the names of sources begin that are objects of the program and not places."""


@dataclass(frozen=True)
class Connection:
    """One URI of a stream, opened; no URI for what only this process can open."""

    stream: int
    connector: Connector
    uri: str | None = None


@runtime_checkable
class Spooling(Protocol):
    """A connector that keeps what it receives in the checkpoint until it is consumed."""

    def for_run(self, use: int) -> Connector:
        """A connector of the same input for one run; `use` counts its places in the query."""

    def attach(self, store: Store, follow: bool, available_now: bool = False) -> None: ...

    def close(self) -> None: ...


@runtime_checkable
class AsOfNow(Protocol):
    """A connector that can be told to give what there is when the run starts, and nothing newer.

    It stays live: what comes later is for a later run. Raises SourceError where that means nothing.
    """

    def take_as_of_now(self) -> None: ...


@runtime_checkable
class Arriving(Protocol):
    """A connector whose input comes by and by, also that which was there when the run started."""

    def arriving(self) -> bool:
        """Whether some of that has not come yet."""


@runtime_checkable
class Telling(Protocol):
    """A connector that says when something has come, so that nobody has to ask for it."""

    def tell(self, listener: Callable[[], None]) -> None:
        """Call this, in any thread, after something has come that `discover` and `extend` show."""

    def tell_no_more(self, listener: Callable[[], None]) -> None: ...


@runtime_checkable
class Expected(Protocol):
    """A connector that knows when it is worth asking again."""

    def expected_s(self) -> float | None:
        """In how many seconds something more may be there; None where that is not known."""


def opened(uri: str, stream: StreamDef, options: RunOptions) -> Connector:
    """What a URI of a stream stands for, in a run with these options."""
    lasts = options.follow or options.available_now
    connector = open_uri(uri, stream.name, stream.time, lasts, stream.reading)
    if options.available_now and isinstance(connector, AsOfNow):
        connector.take_as_of_now()
    return connector


def connections_of(
    streams: Sequence[StreamDef], given: Mapping[str, Connector], options: RunOptions
) -> list[Connection]:
    """Every URI of every stream position, opened; a stream that is there twice is opened twice."""
    connections: list[Connection] = []
    uses: Counter[str] = Counter()
    for position, stream in enumerate(streams):
        for uri in stream.uris:
            if uri not in given:
                if uri.startswith(IN_PROGRAM):
                    raise OptionError(
                        f"stream {stream.name}",
                        "must be of the session that runs the query",
                        "one of another session",
                        "Make all its streams with one session.",
                    )
                connections.append(Connection(position, opened(uri, stream, options), uri))
                continue
            connector = given[uri]
            if isinstance(connector, Spooling):
                connector = connector.for_run(uses[uri])
                uses[uri] += 1
            connections.append(Connection(position, connector))
    return connections
