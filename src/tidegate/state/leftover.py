"""Lists the files of a checkpoint that no kept state needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidegate.remote.folder import Entry
from tidegate.state.manifest import Manifest
from tidegate.state.name import ARCHIVE, counts, is_own, manifest_name
from tidegate.storage.whole_file import is_temporary


@dataclass(frozen=True)
class CleanedFiles:
    """What `Store.clean` removed: the number of files by kind, and their bytes."""

    temporary: int = 0
    segments: int = 0
    gate: int = 0
    staged: int = 0
    manifests: int = 0
    epochs: int = 0
    archived: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, removed: Sequence[Entry]) -> CleanedFiles:
        lasting = [entry.name for entry in removed if not is_temporary(entry.name)]

        def within(folder: str) -> int:
            return sum(name.startswith(folder + "/") for name in lasting)

        return cls(
            temporary=len(removed) - len(lasting),
            segments=within("segment"),
            gate=within("gate"),
            staged=within("staged"),
            manifests=within("manifest"),
            epochs=within("epoch"),
            archived=within(ARCHIVE),
            bytes=sum(entry.bytes for entry in removed),
        )


def unreferenced(
    kept: Sequence[Manifest], listed: Iterable[Entry], archived: frozenset[str] = frozenset()
) -> list[Entry]:
    """The files of a checkpoint that neither these manifests (newest last) nor the archive need."""
    needed = archived.union(*(manifest.names() for manifest in kept))
    needed |= {manifest_name(manifest.number) for manifest in kept}
    newest = kept[-1] if kept else None
    found = []
    for entry in listed:
        lasts = newest is not None and counts(newest, entry.name)
        spare = entry.name in needed or (lasts and not is_temporary(entry.name))
        if is_own(entry.name) and not spare:
            found.append(entry)
    return found


def outdated(older: Manifest, previous: Manifest, current: Manifest) -> list[str]:
    """A manifest, and the files it lists that these two do not, in the order of deletion.

    The manifest goes first: if a crash comes before the rest, no manifest lists a missing file.
    """
    spare = older.names() - previous.names() - current.names()
    return [manifest_name(older.number), *sorted(spare)]
