"""The files of a checkpoint's archive: the manifests of consecutive batches, compressed.

A file of the state that one batch needs and the next one does not is never needed again. So when a
file of the archive is written, the files that its batches alone need are known for good: these are
its `spare` files, which are deleted with it.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.errors import StateError
from tidegate.state.files import Files, guard
from tidegate.state.manifest import Manifest, check_version
from tidegate.state.name import ARCHIVE, archive_name, archived_batches
from tidegate.state.seal import REMEDY, damaged, seal, unseal


@dataclass(frozen=True)
class ArchiveFile:
    """A file of the archive; its manifests are unpacked on request.

    `until_us` is when the newest of its batches was committed, `frontier_us` the frontier of the
    oldest.
    """

    where: str
    until_us: int
    frontier_us: int
    spare: tuple[str, ...]
    packed: str

    def manifests(self) -> list[Manifest]:
        """The states after its batches, oldest first; damage is a StateError."""
        texts = zlib.decompress(base64.b64decode(self.packed)).splitlines(keepends=True)
        return [Manifest.from_json(text, self.where) for text in texts]


def archive_files(files: Files) -> dict[str, range]:
    """The files of the archive with their batches, oldest first."""
    found = [(n, span) for n in files.names(ARCHIVE) if (span := archived_batches(n)) is not None]
    return dict(sorted(found, key=lambda one: (one[1].start, one[0])))


def write_archive(
    files: Files, manifests: Sequence[Manifest], spare: frozenset[str], owner: int
) -> None:
    """Write the manifests of consecutive batches, oldest first; `owner` is the run that writes."""
    text = "".join(manifest.to_json() for manifest in manifests)
    first, newest = manifests[0], manifests[-1]
    body = {
        "version": newest.version,
        "until_us": newest.at_us,
        "frontier_us": first.frontier_us,
        "spare": sorted(spare),
        "packed": base64.b64encode(zlib.compress(text.encode())).decode(),
    }
    with files.create(archive_name(first.batch, newest.batch, owner)) as out:
        out.write(seal(body).encode())


def read_archive(files: Files, name: str) -> ArchiveFile:
    """A file of the archive; missing or damaged is a StateError that names it."""
    where = files.full(name)
    body = unseal(guard(lambda: files.buffer(name), where, REMEDY).to_pybytes(), where)
    check_version(body.get("version"), where)
    try:
        return ArchiveFile(
            where,
            int(body["until_us"]),
            int(body["frontier_us"]),
            tuple(body["spare"]),
            body["packed"],
        )
    except (LookupError, TypeError, ValueError) as error:
        raise damaged(where, f"a wrong member: {error}") from error


def sound_archive(files: Files, name: str) -> ArchiveFile | None:
    """A file of the archive; None where it is missing or damaged."""
    try:
        return read_archive(files, name)
    except StateError:
        return None
