"""Opens the sources of a query: a connector for each URI of its streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate.connector import Connector
from tidegate.driver.options import RunOptions
from tidegate.errors import OptionError
from tidegate.query.node.node import StreamDef
from tidegate.source.registry import open_uri

IN_PROGRAM = ("memory:", "frame:")
"""The prefix of the names of sources that are objects of the program, without a URI."""


@dataclass(frozen=True)
class Connection:
    """One opened source of a stream; the URI is None if only this process can open it."""

    stream: int
    connector: Connector
    uri: str | None = None


def opened(uri: str, stream: StreamDef, options: RunOptions) -> Connector:
    """Open a URI of a stream for a run with these options."""
    lasts = options.follow or options.available_now
    connector = open_uri(uri, stream.name, stream.time, lasts, stream.reading)
    if options.available_now:
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
                legs = opened(uri, stream, options).legs()
                connections += [Connection(position, leg, uri) for leg in legs]
                continue
            connector = given[uri].for_run(uses[uri])
            uses[uri] += 1
            connections.append(Connection(position, connector))
    return connections
