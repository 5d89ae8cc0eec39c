"""Sources that are opened one by one, between a connector of many and who wants them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from tidegate.connector import Source


class Opening(Sequence[Source]):
    """Sources by their ids; each is opened when it is first taken from here, and kept then."""

    def __init__(self, open_: Callable[[str], Source], ids: Sequence[str]) -> None:
        self._open = open_
        self._ids = ids
        self._opened: dict[str, Source] = {}

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, at: int) -> Source: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Source]: ...

    def __getitem__(self, at: int | slice) -> Source | Sequence[Source]:
        if isinstance(at, slice):
            return Opening(self._open, self._ids[at])
        id_ = self._ids[at]
        if id_ not in self._opened:
            self._opened[id_] = self._open(id_)
        return self._opened[id_]

    def __iter__(self) -> Iterator[Source]:
        return (self[place] for place in range(len(self)))
