"""Reads and writes the files of a checkpoint on S3, Google Cloud Storage and Azure.

`pyarrow.fs` reaches them too, but it cannot create an object only if there is none. That is how one
of two runs gets the next manifest.
"""

from __future__ import annotations

import logging

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, NotSupportedError, PreconditionError

from tidegate.remote.object_folder import ObjectFolder, as_os_error
from tidegate.remote.object_uri import ObjectPlace
from tidegate.state.files import WholeFiles, unwritten
from tidegate.storage.durable import Due

_log = logging.getLogger(__name__)


class ObjectFiles(ObjectFolder, WholeFiles):
    """A folder of an object store: objects appear whole, and there are no folders to make."""

    def __init__(self, place: ObjectPlace) -> None:
        super().__init__(place)
        self._refuses: bool | None = None
        """Whether the server refuses to create an object that exists; None until it was tried."""

    def put_new(self, name: str, data: bytes, due: Due | None = None) -> bool:
        """Exactly one of several runs succeeds; on a server without conditional puts, unless they
        write at the same moment."""
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
            # A server that does not know the condition ignores it. Create the object a second time
            # with the same bytes: a server that allows that would allow another run, too.
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
        """Look before the write whether there is a file, and after it whether it is ours."""
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
        """Nothing to do: a folder appears with its first object."""

    def prune(self, folder: str) -> None:
        """Nothing to do: a folder disappears with its last object."""
