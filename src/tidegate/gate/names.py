"""Keeps the known names of a folder's files across restarts.

A restart must tell a file that was read from one that came since, wherever its name sorts, and must
give unread files their old orders. So every name is kept with its order: the newest few in the
manifest, the others in files beside it, which are merged now and then.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from tidegate.errors import StateError
from tidegate.state.seal import REMEDY
from tidegate.state.store import Store

FEW_NAMES = 64
"""The most names in a manifest when it is written."""

_SCHEMA = pa.schema(
    [
        ("order", pa.int64()),
        ("name", pa.string()),
        ("extent", pa.int64()),
        ("digest", pa.int64()),
    ]
)


class ListedFile(NamedTuple):
    """A file that was listed: its order among the sources of its stream, its name, its extent.

    The digest tells it from another file of the same name and extent.
    """

    order: int
    name: str
    extent: int
    digest: int = 0


class Page(NamedTuple):
    """A file of the store with names of sources."""

    file: str
    names: int
    checksum: int


class NameLog:
    """Every source of one folder that was listed, as long as its file is there.

    In memory it has the newest names and the places of the others; on disk it grows with the files
    in the folder. A name is one line in a manifest, and is rewritten about log2(names) times.
    """

    def __init__(self, saved: Mapping[str, Any] | None = None) -> None:
        saved = saved or {"recent": [], "pages": []}
        self._recent = [ListedFile(*entry) for entry in saved["recent"]]
        self._pages = [Page(*entry) for entry in saved["pages"]]

    @property
    def files(self) -> list[str]:
        """The files of the store that hold names."""
        return [page.file for page in self._pages]

    def note(self, known: ListedFile) -> None:
        """Keep a source that is new, or whose extent has changed."""
        self._recent.append(known)

    def write(self, store: Store, file: str, is_needed: Callable[[ListedFile], bool]) -> None:
        """Move names into a file if there are many; call it before `saved`.

        Pages are merged like the digits of a binary counter: there are at most log2(names) of them,
        and a name moves as often at most. Names that are not needed any more are left out.
        """
        if len(self._recent) <= FEW_NAMES:
            return
        names, self._recent = self._recent, []
        while self._pages and self._pages[-1].names <= len(names):
            names = [*_read(store, self._pages.pop()), *names]
        # A file that has grown was noted again: its last entry counts.
        newest = {known.order: known for known in names}
        kept = [known for known in newest.values() if is_needed(known)]
        if kept:
            self._pages.append(_write(store, file, kept))

    def read(self, store: Store | None) -> dict[str, ListedFile]:
        """All known files by name; reads every page, so it is for starts only."""
        found: dict[str, ListedFile] = {}
        for page in self._pages:
            assert store is not None, "names in files need the store they are in"
            found |= {known.name: known for known in _read(store, page)}
        return found | {known.name: known for known in self._recent}

    def saved(self) -> dict[str, Any]:
        """The members of a manifest."""
        return {"recent": [list(k) for k in self._recent], "pages": [list(p) for p in self._pages]}


def _write(store: Store, file: str, names: Iterable[ListedFile]) -> Page:
    rows = sorted(names)
    table = pa.table([list(column) for column in zip(*rows, strict=True)], schema=_SCHEMA)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _SCHEMA) as writer:
        writer.write_table(table)
    data = sink.getvalue().to_pybytes()
    store.write(file, data)
    return Page(file, len(rows), zlib.crc32(data))


def _read(store: Store, page: Page) -> list[ListedFile]:
    data = store.read(page.file)
    if zlib.crc32(data) != page.checksum:
        where = store.files.full(page.file)
        raise StateError(where, "must be as it was written", "other bytes", REMEDY)
    with pa.ipc.open_file(pa.BufferReader(data)) as reader:
        columns = [column.to_pylist() for column in reader.read_all().columns]
    return [ListedFile(*row) for row in zip(*columns, strict=True)]
