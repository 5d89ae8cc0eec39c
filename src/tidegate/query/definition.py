"""StreamDef: a stream's sources, time column and lateness."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tidegate.calendar.duration import duration_text
from tidegate.errors import QueryError, near
from tidegate.source.subscription import AS_FOUND, Reading


@dataclass(frozen=True)
class StreamDef:
    """A named stream: its sources, its time column, and how late tuples may be.

    `uris` is empty if the program hands in source objects. `idle_us` None, the default, lets a
    silent source hold back the frontier for ever: that keeps results deterministic. `reading` are
    the options for reading files, also of files that appear later. `types_from` says where the
    column types come from, for people; it may be empty.
    """

    name: str
    uris: tuple[str, ...]
    time: str
    disorder_us: int
    idle_us: int | None
    schema: pa.Schema
    reading: Reading = AS_FOUND
    types_from: str = ""

    def __post_init__(self) -> None:
        where = f"stream {self.name}"
        if self.time not in self.schema.names:
            raise QueryError(
                where,
                "the time must be one of its columns",
                self.time,
                near(self.time, self.schema.names),
            )
        if self.disorder_us < 0:
            raise QueryError(
                where, "DISORDER must not be negative", duration_text(self.disorder_us)
            )
        if self.idle_us is not None and self.idle_us <= 0:
            raise QueryError(where, "IDLE must be longer than zero", duration_text(self.idle_us))
