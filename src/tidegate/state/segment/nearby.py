"""Keeps segments of a remote store on the disk of an executor, for all of its workers.

Each worker is a process with its own memory, and Spark gives an instance to any of them. What one
worker has fetched or written, the others map from here. Spark removes the folder with the executor.
It may be lost at any time and is written without a sync. So each file ends with its checksum, and
every process checks a file when it maps it for the first time.
"""

from __future__ import annotations

import hashlib
import logging
import os
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache

import pyarrow as pa

from tidegate.memory import bytes_of
from tidegate.storage import disk
from tidegate.storage.whole_file import is_temporary, whole_file

_log = logging.getLogger(__name__)

LIMIT = "TIDEGATE_SEGMENT_CACHE"
"""The environment variable with the size of the folder, such as 4GB; 0 turns it off."""

DEFAULT = "1GB"
_LOCAL = "SPARK_LOCAL_DIRS"
"""The variable in which a Spark worker finds folders of its executor. Outside of workers it is a
setting of the host."""

_SUM_BYTES = 4
"""The length of the checksum at the end of a file."""

_MOST_CHECKED = 65_536
_OF_EXECUTOR = "blockmgr-"
_FOLDER = "tidegate-segments"


class Nearby:
    """A folder of files by key; the oldest are deleted when it exceeds `limit_bytes`.

    A mapped file stays readable after that. Several processes may use the folder at a time.
    """

    def __init__(self, folder: str, limit_bytes: int) -> None:
        self._folder, self._limit = folder, limit_bytes
        self._usable = limit_bytes > 0
        self._checked: OrderedDict[str, int] = OrderedDict()
        """The files that this process has checked, by path, with their checksums."""

    def get(self, key: Hashable, load: Callable[[], pa.Buffer]) -> pa.Buffer:
        """The mapped file of a key if it is there and undamaged; else `load` it and keep it."""
        path = self._path(key)
        try:
            found = self._good(path) if self._usable else None
        except FileNotFoundError:
            found = None
        if found is not None:
            return found
        data = load()
        kept = self.put(key, data)
        return data if kept is None else kept

    def holds(self, key: Hashable) -> bool:
        """Whether there is a file for a key."""
        return self._usable and disk.is_file(self._path(key))

    def put(self, key: Hashable, data: pa.Buffer) -> pa.Buffer | None:
        """Keep bytes as a file and return it mapped; None if it is too large or the disk is full.

        After an error of the disk nothing is kept any more: a cache must not fail a batch.
        """
        size = data.size + _SUM_BYTES
        if not self._usable or size > self._limit:
            return None
        path = self._path(key)
        try:
            disk.make_folders(self._folder, 0o700)
            self._make_room(size)
            with whole_file(path, sync="nothing") as file:
                file.write(data)
                file.write(zlib.crc32(data).to_bytes(_SUM_BYTES, "little"))
            return self._good(path)
        except OSError as error:
            self._usable = False
            _log.warning("%s: segments are not kept there any more: %s", self._folder, error)
            return None

    def _good(self, path: str) -> pa.Buffer | None:
        """The data of a file, mapped; None where it is damaged."""
        whole = disk.current().map(path)
        size = whole.size - _SUM_BYTES
        if size < 0:
            return None
        data = whole.slice(0, size)
        # Written without a sync: after a loss of power a file may have its name and not its bytes.
        told = int.from_bytes(whole.slice(size).to_pybytes(), "little")
        if self._checked.get(path) != told:
            if zlib.crc32(data) != told:
                return None
            self._checked[path] = told
            if len(self._checked) > _MOST_CHECKED:
                self._checked.popitem(last=False)
        return data

    def _make_room(self, wanted: int) -> None:
        files = []
        for name in disk.current().names(self._folder):
            path = os.path.join(self._folder, name)
            if disk.is_file(path) and not is_temporary(name):
                status = disk.seen(path)
                files.append((status.modified_ns, path, status.bytes))
        held = sum(size for *_, size in files)
        for _, path, size in sorted(files):
            if held + wanted <= self._limit:
                return
            disk.unlink_if_there(path)
            held -= size

    def _path(self, key: Hashable) -> str:
        name = hashlib.sha256(repr(key).encode()).hexdigest()
        return os.path.join(self._folder, f"{name}.arrow")


def nearby() -> Nearby | None:
    """The folder of the executor that this process works for; None if it works for none."""
    place = executor_folder()
    if place is None:
        return None
    return _at(os.path.join(place, _FOLDER), os.environ.get(LIMIT, DEFAULT))


def executor_folder() -> str | None:
    """The path of a folder that Spark removes with this process's executor; None without one."""
    place = os.environ.get(_LOCAL, "").split(",")[0]
    return place if os.path.basename(place).startswith(_OF_EXECUTOR) else None


@lru_cache
def _at(folder: str, limit: str) -> Nearby:
    return Nearby(folder, bytes_of(limit, LIMIT))
