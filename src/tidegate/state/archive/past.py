"""Reads the states of a checkpoint that a user can go back to: the newest ones, and its archive."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property

from tidegate.batch import MAX_US
from tidegate.calendar.microsecond import time_text
from tidegate.errors import CheckpointError, StateError
from tidegate.state.archive.file import ArchiveFile, archive_files, read_archive
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store

_KEEP = "Run the query with --keep '24 hours', in Python keep=, to keep the states of that time."


class PastStates:
    """The states that are there at the first call; a run that is at work may delete some meanwhile.

    Holds the manifests that are in no archive, and the names of the archive's files.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @cached_property
    def _there(self) -> tuple[dict[int, Manifest], dict[str, range]]:
        """The manifests that are in no archive, by batch; and the archive's files by their batches.

        They are read in this order. A manifest that a run archives meanwhile is then found in both
        places; in the other order it could be missed in both.
        """
        loose = {manifest.batch: manifest for manifest in self._unpacked()}
        return loose, archive_files(self._store.files)

    def _unpacked(self) -> Iterator[Manifest]:
        for number in self._store.numbers():
            try:
                manifest = self._store.manifest(number)
            except StateError:
                if number in self._store.numbers():
                    raise
                continue  # it was archived just now
            if manifest.batch >= 0:
                yield manifest

    @property
    def batches(self) -> list[int]:
        """The batches whose state is kept, ascending."""
        loose, files = self._there
        return sorted({*loose, *(batch for span in files.values() for batch in span)})

    @property
    def repeatable(self) -> list[int]:
        """The batches that can run again: the state before them is kept, or they are the first."""
        there = {-1, *self.batches}
        return sorted(batch for batch in there if batch >= 0 and batch - 1 in there)

    def of(self, batch: int) -> Manifest:
        """The state after a batch; a CheckpointError, which lists the kept ones, if not there."""
        return next(self.course(batch, batch))

    def course(self, first: int, last: int) -> Iterator[Manifest]:
        """The states after consecutive batches; holds one file of the archive at a time."""
        loose, files = self._there
        batch = first
        while batch <= last:
            begun, found = batch, [loose[batch]] if batch in loose else []
            if not found:
                names = [name for name, span in files.items() if batch in span][:1]
                found = [m for name in names for m in self._read(name).manifests()]
            for manifest in found:
                if batch == manifest.batch <= last:
                    yield manifest
                    batch += 1
            if batch == begun:
                raise self._not_there(batch)

    def newest_until(self, time_us: int) -> Manifest:
        """The state after the newest batch whose frontier is at most a time; reads few files."""
        loose, files = self._there
        early = [m for m in loose.values() if m.frontier_us <= time_us]
        if len(early) < len(loose):
            names = list(files)
            at = bisect_right(names, time_us, key=lambda name: self._read(name).frontier_us)
            packed = self._read(names[at - 1]).manifests() if at else []
            early += [m for m in packed if m.frontier_us <= time_us]
        if not early:
            raise self._none_until(time_us)
        return max(early, key=lambda manifest: manifest.batch)

    def _read(self, name: str) -> ArchiveFile:
        return read_archive(self._store.files, name)

    def _not_there(self, batch: int) -> CheckpointError:
        there = batches_text(self.batches) or "none"
        return CheckpointError(
            self._store.location, f"must have the state after batch {batch}", f"{there}", _KEEP
        )

    def _none_until(self, time_us: int) -> CheckpointError:
        batches = self.batches
        got = "no batch" if not batches else "none"
        if batches:
            oldest = self.of(batches[0])
            at = "" if oldest.frontier_us == MAX_US else f", of {time_text(oldest.frontier_us)}"
            got = f"the oldest after batch {oldest.batch}{at}"
        requirement = f"must have a state whose watermark is at most {time_text(time_us)}"
        return CheckpointError(self._store.location, requirement, got, _KEEP)


def batches_text(batches: Iterable[int]) -> str:
    """Numbers of batches for people; consecutive ones as first-last."""
    spans: list[list[int]] = []
    for batch in batches:
        if spans and spans[-1][-1] == batch - 1:
            spans[-1][1:] = [batch]
        else:
            spans.append([batch])
    return ", ".join("-".join(map(str, span)) for span in spans)
