"""Lets tasks open the checkpoint of their driver."""

from __future__ import annotations

import itertools
import os
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import pyarrow as pa
from pyarrow.fs import FileSystem

from tidegate.errors import CheckpointError, OptionError
from tidegate.remote.disk import disk_of, remote_path
from tidegate.remote.object_uri import object_place, with_region
from tidegate.remote.scheme import is_object_uri, is_remote_uri, refuse_keys, shown, unusable
from tidegate.state.files import Files, RemoteFiles, files_at

if TYPE_CHECKING:
    from tidegate.state.store import Store

_in_process: WeakValueDictionary[int, FileSystem] = WeakValueDictionary()
_tokens = itertools.count()


@dataclass(frozen=True)
class StoreHandle:
    """What a task gets in place of a store: small and picklable. `open` costs no I/O.

    A file system that cannot be pickled, such as one in memory, is opened only in the process that
    made the handle, and only while it is in use there. Anywhere else `open` is a CheckpointError.
    """

    location: str
    place: tuple[FileSystem, str] | None = None
    token: tuple[int, int, str] | None = None

    def open(self) -> Store:
        from tidegate.state.store import Store  # which has handles made of it

        if self.token is not None:
            process, number, path = self.token
            fs = _in_process.get(number) if process == os.getpid() else None
            if fs is None:
                raise CheckpointError(
                    self.location,
                    "must be a checkpoint that every process can open",
                    "a file system that lives in the memory of another process",
                    "Use a folder or a URI, or run without Spark.",
                )
            return Store(files_at(fs, path), self)
        return Store(files_at(*self.place), self) if self.place else Store.open(self.location)


def handle_of(place: tuple[FileSystem, str], files: Files) -> StoreHandle:
    """The handle of a store on a file system that the caller made."""
    if not isinstance(files, RemoteFiles):
        return StoreHandle(files.root)
    location = files.full("").rstrip("/")
    try:
        pickle.dumps(place)
    except (TypeError, AttributeError, pickle.PicklingError):
        number = next(_tokens)
        _in_process[number] = files.fs
        return StoreHandle(location, token=(os.getpid(), number, files.root))
    return StoreHandle(location, place=place)


def files_of(uri: str) -> tuple[Files, str]:
    """The folder that a URI names, and the URI by which tasks open it without a request."""
    refuse_keys(uri, f"checkpoint {shown(uri)}", OptionError)
    if is_object_uri(uri):
        from tidegate.state.object_files import ObjectFiles  # other stores need no client

        uri = with_region(uri)
        return ObjectFiles(object_place(uri)), uri
    if is_remote_uri(uri):
        path = remote_path(uri)
        return files_at(disk_of(uri).fs, disk_of(uri).inner(path)), uri
    if not uri.lower().startswith("file:/"):
        raise unusable(uri, f"checkpoint {shown(uri)}", OptionError)
    try:
        return files_at(*FileSystem.from_uri(uri)), uri
    except (pa.ArrowException, ValueError) as error:
        must, remedy = "must be a folder of this machine", "Write it as file:///path."
        raise OptionError(uri, must, str(error).splitlines()[0], remedy) from error
