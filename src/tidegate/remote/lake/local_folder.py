"""Puts whole, synced files into a folder of this host."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tidegate.remote.folder import Entry
from tidegate.storage import disk
from tidegate.storage.whole_file import sync_names, whole_file


class LocalFolder:
    """A `DataFolder` of this host; errors are the system's.

    Small and picklable: tasks write into it by its absolute path.
    """

    def __init__(self, path: str) -> None:
        self.root = os.path.abspath(path)

    def full(self, name: str) -> str:
        return os.path.join(self.root, name)

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Costs two syncs, and one for each new folder."""
        path = self.full(name)
        for made in disk.make_folders(os.path.dirname(path)):
            sync_names(os.path.dirname(made))
        with whole_file(path, sync="folder") as file:
            file.write(data)

    def read(self, name: str) -> bytes:
        return disk.read(self.full(name))

    def list(self, folder: str) -> Sequence[Entry]:
        """The files in a folder, sorted by name; none where it is not there."""
        place = self.full(folder)
        if not disk.is_folder(place):
            return []
        names = (f"{folder}/{name}" for name in sorted(disk.current().names(place)))
        found = [(name, disk.current().status(self.full(name))) for name in names]
        return [Entry(name, status.bytes) for name, status in found if not status.folder]

    def folders(self, folder: str) -> Sequence[str]:
        place = self.full(folder)
        if not disk.is_folder(place):
            return []
        names = sorted(disk.current().names(place))
        return [name for name in names if disk.is_folder(os.path.join(place, name))]

    def delete_all(self, names: Sequence[str]) -> None:
        """Remove files; those that are not there are fine."""
        for name in names:
            disk.unlink_if_there(self.full(name))
