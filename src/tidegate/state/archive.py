"""Keeps the states of earlier batches for a time, so that one can be gone back to.

The manifest of a batch stays in its place until PACKED of them are older than the newest two. Then
they are written into one file of the archive, and deleted (`archive_file`). A file of the archive
goes when the newest of its batches is older than what is to be kept, and with it what only its
batches needed. So the disk holds what was asked for and less than two such files more, the driver
holds a few numbers, and a start reads one file for PACKED batches.

How old a batch is follows from its own manifest beside the newest one, never from a clock.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tidegate.errors import StateError
from tidegate.remote.folder import Entry
from tidegate.state.archive_file import read_archive, sound_archive, write_archive
from tidegate.state.leftover import outdated
from tidegate.state.manifest import Manifest
from tidegate.state.name import ARCHIVE, archived_batches, manifest_name, manifest_number

if TYPE_CHECKING:
    from tidegate.state.store import Store

PACKED = 64
"""How many manifests go into a file at once."""

_log = logging.getLogger(__name__)


class Archive:
    """The states of a running query that are kept for `keep_us`.

    Holds the numbers of less than PACKED manifests. `enter` is called at a start, then `retire` for
    each batch, by one thread.
    """

    def __init__(self, store: Store, keep_us: int, packed: int) -> None:
        self._store = store
        self._keep_us = keep_us
        self._packed = packed
        self._loose: list[int] = []
        """The numbers of manifests that are older than the newest two, and in no archive yet."""

    def enter(self, kept: Sequence[Manifest], listed: Sequence[Entry]) -> frozenset[str]:
        """Go on with what is there beside the manifests of a state; the files that it needs."""
        loose, names = archived(self._store, kept, listed)
        self._loose = [manifest.number for manifest in loose]
        return names

    def retire(self, older: Manifest, previous: Manifest, current: Manifest) -> int:
        """Keep the state `older`, which two newer ones follow, and delete what is too old.

        How many files were deleted.
        """
        if not older.at_us:  # of a run that kept nothing
            return self._delete(outdated(older, previous, current))
        self._loose.append(older.number)
        if len(self._loose) < self._packed:
            return 0
        self._store.check_owner()  # what another run has there is not ours to delete
        gone = self._pack(previous, current)
        return gone + self._expire(current.at_us)

    def _pack(self, previous: Manifest, current: Manifest) -> int:
        loose, self._loose = self._loose, []
        found = sound_manifests(self._store, loose)
        if found:
            needed = frozenset[str]().union(*(manifest.names() for manifest in found))
            spare = needed - previous.names() - current.names()
            write_archive(self._store.files, found, spare, self._store.owner)
        return self._delete(manifest_name(number) for number in loose)

    def _expire(self, now_us: int) -> int:
        """Delete the files that are too old, oldest first; looks at one that is not."""
        gone = 0
        for name in sorted(self._store.files.names(ARCHIVE)):
            if archived_batches(name) is None:
                continue
            file = read_archive(self._store.files, name)
            if now_us - file.until_us <= self._keep_us:
                break
            gone += self._delete([name, *file.spare])
        return gone

    def _delete(self, names: Iterable[str]) -> int:
        return sum(self._store.delete(name) for name in names)


def archived(
    store: Store, kept: Sequence[Manifest], listed: Sequence[Entry]
) -> tuple[list[Manifest], frozenset[str]]:
    """The manifests in no archive that are older than the kept ones, and what all older ones need.

    A file that is damaged counts as gone: then its batches cannot be gone back to.
    """
    names = [entry.name for entry in listed]
    spans = {name: span for name in names if (span := archived_batches(name)) is not None}
    needed: set[str] = set()
    for name in spans:
        file = sound_archive(store.files, name)
        if file is None:
            _log.warning("%s is damaged; its batches are let go", store.files.full(name))
        else:
            needed |= {name, *file.spare}
    last = max((span[-1] for span in spans.values()), default=-1)
    numbers = [n for name in names if (n := manifest_number(name)) is not None]
    older = [n for n in sorted(numbers) if kept and n < kept[0].number]
    by_batch = {m.batch: m for m in sound_manifests(store, older) if m.at_us and m.batch > last}
    loose = [m for m in by_batch.values() if m.batch < kept[0].batch]
    for manifest in loose:
        needed |= {manifest_name(manifest.number), *manifest.names()}
    return loose, frozenset(needed)


def sound_manifests(store: Store, numbers: Iterable[int]) -> list[Manifest]:
    """The manifests of these numbers that are there and whole."""
    found = []
    for number in numbers:
        try:
            found.append(store.manifest(number))
        except StateError as error:
            _log.warning("%s; its batch is let go", error)
    return found
