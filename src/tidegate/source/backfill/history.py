"""The history of a stream: files or a table, as they are when the first run begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidegate.batch import MAX_US
from tidegate.connector import Connector, ListedSource, Source
from tidegate.source.backfill.leg import LegSource, TimeSpan


class HistoryConnector(Connector):
    """Another connector, read to the end of what the first run has listed, and no further.

    Grows with the names of the listed sources.
    """

    several = True
    frozen = True

    def __init__(self, inner: Connector) -> None:
        inner.frozen = True
        self._inner = inner
        self.schema = inner.schema
        self.span = TimeSpan()
        """The event times that count; set before the first source is opened."""
        self._listed: list[str] = []

    @property
    def types_from(self) -> str:
        return self._inner.types_from

    def listed(self) -> Iterator[Source]:
        """Open the sources of this run, one after the other, with all their rows."""
        return map(self._inner.open, self._listed)

    def discover(self) -> Sequence[Source]:
        return self._inner.discover()

    def first_sources(self, count: int) -> Sequence[Source]:
        return self._inner.first_sources(count)

    def live(self) -> bool:
        return False

    def close(self) -> None:
        self._inner.close()

    def resume(self, listed: Sequence[str], unread: Sequence[str]) -> None:
        self._inner.resume(listed, unread)

    def list_new(self) -> Sequence[ListedSource]:
        found = self._inner.list_new()
        self._listed = [one.id for one in found if one.low_us < MAX_US]
        return found

    def open(self, id: str) -> Source:
        return LegSource(self._inner.open(id), self.span)

    def open_beyond(self, id: str, extent: int, digest: int) -> tuple[Source, int]:
        source, position = self._inner.open_beyond(id, extent, digest)
        return LegSource(source, self.span), position

    def let_go(self, id: str) -> tuple[int, int] | None:
        return self._inner.let_go(id)

    def has(self, id: str) -> bool:
        return self._inner.has(id)
