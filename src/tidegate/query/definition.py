"""StreamDef: the sources, the time column and the lateness of a stream of a plan."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tidegate.duration import duration_text
from tidegate.errors import QueryError, near
from tidegate.source.subscription import AS_FOUND, Reading


@dataclass(frozen=True)
class StreamDef:
    """A named stream: where its sources are, which column is its time, and how late it may be.

    `uris` may be empty when the sources are handed in as objects. `idle_us` is None when a silent
    source holds the frontier back for ever, which is the default because it keeps determinism.
    `reading` is what was said of how files are read, also of those that join later; `types_from`
    tells people where the types of columns come from, empty where there is nothing to tell.
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
