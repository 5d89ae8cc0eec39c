"""Reads and writes the files of a checkpoint on S3, Google's and Azure's stores.

`pyarrow.fs` reaches them too, and cannot create an object only where there is none, which is how
one of two runs gets the next manifest.
"""

from __future__ import annotations

import logging

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, NotSupportedError, PreconditionError

from tidegate.durable import Due
from tidegate.remote.object_folder import ObjectFolder, as_os_error
from tidegate.remote.object_uri import ObjectPlace
from tidegate.state.files import WholeFiles, unwritten

_log = logging.getLogger(__name__)


class ObjectFiles(ObjectFolder, WholeFiles):
    """A folder of an object store: objects appear whole, and there are no folders to make."""

    def __init__(self, place: ObjectPlace) -> None:
        super().__init__(place)
        self._refuses: bool | None = None
        """Whether the server refuses to create what is there; None until that was seen."""

    def put_new(self, name: str, data: bytes, due: Due | None = None) -> bool:
        """One of several succeeds; on a server that does not know how, if they do not write at the
        same moment."""
        try:
            if due is not None:
                due.sync()
            with as_os_error():
                return self._put_new(name, data)
        except OSError as error:
            raise unwritten(self.full(name), error) from error

    def _put_new(self, name: str, data: bytes) -> bool:
        if self._refuses is False:
            return self._put_where_none_is(name, data)
        if not self._created(name, data):
            self._refuses = True
            return False
        if self._refuses is None:
            # Servers that do not know the condition take no notice of it: see what this one does.
            self._refuses = not self._created(name, data)
            if not self._refuses:
                _log.warning(
                    "%s: the server writes over objects that it was asked to create (If-None-Match "
                    "has no effect). Two runs that write a manifest at the same moment are not "
                    "told apart: use a server that refuses it, or see that one run is at work.",
                    self.root,
                )
        return True

    def _created(self, name: str, data: bytes) -> bool:
        try:
            obstore.put(self._client, name, data, mode="create")
        except (AlreadyExistsError, PreconditionError):
            return False
        except NotSupportedError:
            self._refuses = False
            return self._put_where_none_is(name, data)
        return True

    def _put_where_none_is(self, name: str, data: bytes) -> bool:
        """Look before and after."""
        if self.exists(name):
            return False
        obstore.put(self._client, name, data)
        return bool(self.buffer(name).to_pybytes() == data)

    def buffer(self, name: str) -> pa.Buffer:
        with as_os_error():
            return pa.py_buffer(obstore.get(self._client, name).bytes())

    def part(self, name: str, begin: int, size: int) -> pa.Buffer:
        with as_os_error():
            return pa.py_buffer(obstore.get_range(self._client, name, start=begin, length=size))

    def exists(self, name: str) -> bool:
        try:
            with as_os_error():
                obstore.head(self._client, name)
        except FileNotFoundError:
            return False
        return True

    def is_folder(self) -> bool:
        with as_os_error():
            return any(obstore.list(self._client, chunk_size=1))

    def delete(self, name: str) -> bool:
        try:
            with as_os_error():
                obstore.delete(self._client, name)
        except FileNotFoundError:
            return False
        return True

    def make(self, folder: str) -> None:
        """Nothing: a folder is there with the first object in it."""

    def prune(self, folder: str) -> None:
        """Nothing: a folder goes with the last object in it."""
