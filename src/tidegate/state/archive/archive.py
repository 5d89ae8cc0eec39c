"""Keeps the states of earlier batches for a time, so that a user can go back to one.

Manifests older than the newest two stay in place until there are PACKED of them. Then they are
written into one file of the archive and deleted (`archive_file`). A file of the archive is deleted
when the newest of its batches is too old, and with it the files that only its batches needed. So
the disk has what was asked for and less than two such files more, the driver holds a few numbers,
and a start reads one file for each PACKED batches.

The age of a batch is the difference between the times in its own manifest and in the newest one. No
clock is read: while nothing is committed, nothing is deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tidegate.errors import StateError
from tidegate.remote.folder import Entry
from tidegate.state.archive.file import ArchiveFile, archive_files, sound_archive, write_archive
from tidegate.state.leftover import outdated
from tidegate.state.manifest import Manifest
from tidegate.state.name import manifest_name, manifest_number

if TYPE_CHECKING:
    from tidegate.state.store import Store

PACKED = 64
"""The number of manifests in a file of the archive."""

_DAMAGED = "%s is damaged; its batches are let go"

_log = logging.getLogger(__name__)


class Archive:
    """The states of a running query that are kept for `keep_us`.

    Holds the numbers of fewer than PACKED manifests. Call `enter` at a start, then `retire` for
    each batch, in one thread.
    """

    def __init__(self, store: Store, keep_us: int, packed: int) -> None:
        self._store = store
        self._keep_us = keep_us
        self._packed = packed
        self._loose: list[int] = []
        """The numbers of manifests older than the newest two that are in no file of the archive."""

    def enter(self, kept: Sequence[Manifest], listed: Sequence[Entry]) -> frozenset[str]:
        """Take up the archive that is there; returns the files that it needs.

        `kept` are the newest two manifests, `listed` all files of the checkpoint.
        """
        loose, names = archived(self._store, kept, listed)
        self._loose = [manifest.number for manifest in loose]
        return names

    def retire(self, older: Manifest, previous: Manifest, current: Manifest) -> int:
        """Keep the state `older`, which two newer ones follow, and delete what is too old.

        Returns how many files were deleted. Kept states have no gap: where a run without an archive
        came in between, states before it are deleted with its first one.
        """
        if not (older.at_us and previous.at_us):
            return self._delete(outdated(older, previous, current))
        self._loose.append(older.number)
        if len(self._loose) < self._packed:
            return 0
        self._store.check_owner()  # a run that was taken over from must not delete its files
        gone = self._pack(previous, current)
        return gone + self._expire(current.at_us)

    def _pack(self, previous: Manifest, current: Manifest) -> int:
        loose, self._loose = self._loose, []
        # The newest batches first: then `later` has all that any later batch needs, and the files
        # beyond it are those that go with this part of the archive.
        later = previous.names() | current.names()
        for found in reversed(in_rows(sound_manifests(self._store, loose))):
            needed = frozenset[str]().union(*(manifest.names() for manifest in found))
            write_archive(self._store.files, found, needed - later, self._store.owner)
            later |= needed
        return self._delete(manifest_name(number) for number in loose)

    def _expire(self, now_us: int) -> int:
        """Delete the files that are too old, oldest first, up to the first one that is not.

        A file from the future was written before the clock was set back. It is as old as the files
        before the next one that is not from the future, and goes with that.
        """
        gone, ahead = 0, list[str]()
        for name in archive_files(self._store.files):
            file = sound_archive(self._store.files, name)
            if file is None:
                _log.warning(_DAMAGED, self._store.files.full(name))
                gone += self._delete([name])
            elif file.until_us > now_us:
                ahead += [name, *file.spare]
            elif now_us - file.until_us <= self._keep_us:
                break
            else:
                gone += self._delete([*ahead, name, *file.spare])
                ahead = []
        return gone

    def _delete(self, names: Iterable[str]) -> int:
        return sum(self._store.delete(name) for name in names)


def archived(
    store: Store, kept: Sequence[Manifest], listed: Sequence[Entry]
) -> tuple[list[Manifest], frozenset[str]]:
    """The manifests older than `kept` in no archive, and the files that all older states need.

    A damaged file counts as gone: nobody can go back to its batches, and a run is not refused. The
    batches before it stay whole.
    """
    names = {entry.name for entry in listed}
    numbers = [n for name in names if (n := manifest_number(name)) is not None]
    older = [n for n in sorted(numbers) if kept and n < kept[0].number]
    # One that a loss of power has brought back may need files that were deleted with it.
    whole = [m for m in sound_manifests(store, older) if m.at_us and m.names() <= names]
    # Listed after the manifests are read: another run that still ends may archive them meanwhile.
    spans = archive_files(store.files)
    needed: set[str] = set()
    sound: list[tuple[range, ArchiveFile]] = []
    for name, span in spans.items():
        file = sound_archive(store.files, name)
        if file is None:
            _log.warning(_DAMAGED, store.files.full(name))
        else:
            needed |= {name, *file.spare}
            sound.append((span, file))
    last = max((span[-1] for span in spans.values()), default=-1)
    by_batch = {m.batch: m for m in whole if m.batch > last}
    rows = in_rows([m for m in by_batch.values() if m.batch < kept[0].batch])
    loose = rows[-1] if rows and kept[0].at_us and rows[-1][-1].batch == kept[0].batch - 1 else []
    for manifest in loose:
        needed |= {manifest_name(manifest.number), *manifest.names()}
    followed = {m.batch for m in (*loose, *kept)} | {span.start for span, _ in sound}
    for span, file in sound:
        if span.stop not in followed:
            # What it shares with the batches that are gone is spare there.
            needed |= file.manifests()[-1].names()
    return loose, frozenset(needed)


def in_rows(manifests: Iterable[Manifest]) -> list[list[Manifest]]:
    """Manifests, which ascend, in stretches without a missing batch."""
    rows: list[list[Manifest]] = []
    for manifest in manifests:
        if rows and rows[-1][-1].batch == manifest.batch - 1:
            rows[-1].append(manifest)
        else:
            rows.append([manifest])
    return rows


def sound_manifests(store: Store, numbers: Iterable[int]) -> list[Manifest]:
    """The manifests of some numbers; those that are missing or damaged are logged and left out."""
    found = []
    for number in numbers:
        try:
            found.append(store.manifest(number))
        except StateError as error:
            _log.warning("%s; its batch is let go", error)
    return found
