"""Writes, lists and moves whole objects on S3, Google's and Azure's stores."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import obstore
from obstore.exceptions import BaseError

from tidegate.remote.folder import Entry
from tidegate.remote.object_uri import ObjectPlace

_CODE = re.compile(r"<Code>(.*?)</Code>")
_SAID = re.compile(r"<Message>(.*?)</Message>")
"""The message in a server's answer."""
_SILENT = re.compile(r"Error performing [A-Z]+ (https?://[^/ ]+).* - HTTP error: (.*)")
_MOST_AT_ONCE = 1000
"""How many objects one request deletes."""


class ObjectFolder:
    """A folder of an object store: objects appear whole, and there are no folders to make."""

    def __init__(self, place: ObjectPlace) -> None:
        self.root = place.root
        self._client = place.client()

    def full(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def put(self, name: str, data: bytes | memoryview) -> None:
        with as_os_error():
            obstore.put(self._client, name, data)

    def read(self, name: str) -> bytes:
        with as_os_error():
            return bytes(obstore.get(self._client, name).bytes())

    def list(self, folder: str, recursive: bool = False) -> list[Entry]:
        prefix = folder or None
        with as_os_error():
            if recursive:
                found: list[Any] = [o for some in obstore.list(self._client, prefix) for o in some]
            else:
                found = list(obstore.list_with_delimiter(self._client, prefix)["objects"])
        entries = [Entry(str(one["path"]), int(one["size"])) for one in found]
        return sorted(entries, key=lambda entry: entry.name)

    def folders(self, folder: str) -> Sequence[str]:
        with as_os_error():
            found = obstore.list_with_delimiter(self._client, folder or None)["common_prefixes"]
        return sorted(str(path).rstrip("/").rpartition("/")[2] for path in found)

    def move(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Copies all objects, then deletes the old ones: a crash leaves some twice, none half."""
        with as_os_error():
            for source, target in pairs:
                obstore.copy(self._client, source, target)
        self.delete_all([source for source, _ in pairs])

    def delete_all(self, names: Sequence[str]) -> None:
        with as_os_error():
            for first in range(0, len(names), _MOST_AT_ONCE):
                try:
                    obstore.delete(self._client, list(names[first : first + _MOST_AT_ONCE]))
                except FileNotFoundError:
                    continue


@contextmanager
def as_os_error() -> Iterator[None]:
    """Turn errors of the client into an OSError with one line of text."""
    try:
        yield
    except BaseError as error:
        raise OSError(_words(str(error)) or type(error).__name__) from error


def _words(text: str) -> str:
    code, said, silent = _CODE.search(text), _SAID.search(text), _SILENT.search(text)
    if said is not None:
        return f"{code[1]}: {said[1]}" if code is not None else said[1]
    if silent is not None:
        return f"no answer from {silent[1]}: {silent[2]}"
    return (text.splitlines() or [""])[0]
