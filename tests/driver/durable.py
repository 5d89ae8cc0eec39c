"""A disk that knows what would be left if the power went, between a run and its real files."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from tidegate.testing import DiskChange, TappedDisk

Watch = Callable[[DiskChange, "DurableDisk"], None]


class DurableDisk(TappedDisk):
    """Notes which files have bytes, and which folders have names, that were not synced.

    `watch` is called ahead of each change, one at a time.
    """

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch
        self._lock = threading.RLock()
        self.unsynced: set[str] = set()
        """Files that were written to since they were synced, or never synced."""
        self.unnamed: set[str] = set()
        """Paths whose name is in a folder that was not synced since."""
        self.changes: list[DiskChange] = []

    def before(self, change: DiskChange) -> None:
        with self._lock:
            self._watch(change, self)
            self.changes.append(change)
            getattr(self, "_" + change.kind.replace(" ", "_"), self._other)(change)

    def lost(self, *below: Path) -> list[str]:
        """What would not be there, or not be whole, of the files below some folders."""
        places = tuple(f"{folder}/" for folder in below)
        names = {p for p in self.unnamed if not Path(p).is_symlink() and Path(p).exists()}
        found = {p for p in self.unsynced | names if p.startswith(places)}
        return sorted(p for p in found if not Path(p).name.endswith(".tmp"))

    def _other(self, change: DiskChange) -> None:
        assert change.kind in ("claim",), change

    def _create(self, change: DiskChange) -> None:
        self.unsynced.add(change.path)
        self.unnamed.add(change.path)

    def _write(self, change: DiskChange) -> None:
        self.unsynced.add(change.path)

    def _make_folder(self, change: DiskChange) -> None:
        self.unnamed.add(change.path)

    def _sync(self, change: DiskChange) -> None:
        self.unsynced.discard(change.path)

    def _sync_folder(self, change: DiskChange) -> None:
        folder = str(Path(change.path).absolute())
        self.unnamed = {p for p in self.unnamed if str(Path(p).parent) != folder}

    def _replace(self, change: DiskChange) -> None:
        self._unlink(DiskChange("unlink", change.target))
        for paths in (self.unsynced, self.unnamed):
            for path in [p for p in paths if p == change.path or p.startswith(change.path + "/")]:
                paths.remove(path)
                paths.add(change.target + path[len(change.path) :])
        self.unnamed.add(change.target)

    def _link(self, change: DiskChange) -> None:
        if change.path in self.unsynced:
            self.unsynced.add(change.target)
        self.unnamed.add(change.target)

    def _unlink(self, change: DiskChange) -> None:
        self.unsynced.discard(change.path)
        self.unnamed.discard(change.path)

    def _remove_folder(self, change: DiskChange) -> None:
        self._unlink(change)

    def write(self, file: IO[bytes], change: DiskChange, data: Any) -> int:
        self.before(change)
        file.write(data)
        return change.bytes
