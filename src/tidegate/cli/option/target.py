"""Writes the files that commands make beside their work, and checks them before the work starts."""

from __future__ import annotations

from pathlib import Path

from tidegate.errors import OptionError, SinkError
from tidegate.storage import disk
from tidegate.storage.whole_file import whole_file


def check_target(option: str, name: str) -> None:
    """Raises for a path where no file can be written, before the command does its work."""
    path = Path(name)
    folder = path.absolute().parent
    trouble = None
    if disk.is_folder(path):
        trouble = f"{name}, a folder"
    elif not disk.is_folder(folder):
        trouble = f"{name}: there is no folder {folder}"
    elif not disk.current().writable(folder):
        trouble = f"{name}: no permission to write in {folder}"
    if trouble is not None:
        raise OptionError(option, "must be a file that can be written", trouble)


def write_target(name: str, content: bytes) -> None:
    """Writes a complete file; on failure an older file stays."""
    try:
        with whole_file(name) as file:
            file.write(content)
    except OSError as error:
        raise SinkError(
            name,
            "the file must be written to its end",
            error.strerror or str(error),
            "Nothing was left behind: make room or fix the folder, then run again.",
        ) from error
