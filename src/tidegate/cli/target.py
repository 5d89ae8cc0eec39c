"""Opens the files that commands write beside their work, and refuses them before it starts."""

from __future__ import annotations

from pathlib import Path

from tidegate import disk
from tidegate.errors import OptionError, SinkError
from tidegate.whole_file import whole_file


def check_target(option: str, name: str) -> None:
    """Refuse a path that cannot become a file, before there is anything to write."""
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
    """Write a file whole, or leave what was there."""
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
