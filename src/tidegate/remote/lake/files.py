"""What sinks of lakehouse tables need of the folder that their data files are in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tidegate.remote.folder import Entry


class DataFolder(Protocol):
    """Files by their names below a root, here or elsewhere; errors are OSErrors."""

    root: str

    def full(self, name: str) -> str:
        """The name a person, or a log of absolute names, finds a file by."""

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Write a file whole, and durably."""

    def read(self, name: str) -> bytes:
        """All bytes of a file."""

    def list(self, folder: str) -> Sequence[Entry]:
        """The files in a folder, sorted by name; none where it is not there."""

    def folders(self, folder: str) -> Sequence[str]:
        """The names of the folders in a folder, sorted; none where it is not there."""

    def delete_all(self, names: Sequence[str]) -> None:
        """Remove files; those that are not there are fine."""
