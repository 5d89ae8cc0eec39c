"""Makes and reads the names of a checkpoint's files: which run wrote one, and whether it counts."""

from __future__ import annotations

import re

from tidegate.state.manifest import Manifest
from tidegate.storage.whole_file import is_temporary

META = "meta.json"

_MANIFEST = re.compile(r"manifest/(\d{8,})\.json")
_OWNED = re.compile(r"\d{8,}\.(\d+)-")
_EPOCHS = re.compile(r"epoch/(\d{8,})\.(\d+)\.json")

ARCHIVE = "archive"
"""The folder with the states of earlier batches."""

_ARCHIVED = re.compile(rf"{ARCHIVE}/(\d{{8,}})-(\d{{8,}})\.(\d+)\.json")


def manifest_name(number: int) -> str:
    """The file of a manifest, relative to the root of the store."""
    return f"manifest/{number:08d}.json"


def manifest_number(name: str) -> int | None:
    """The number of a manifest from its name; None for any other file."""
    match = _MANIFEST.fullmatch(name)
    return int(match[1]) if match else None


def archive_name(first: int, last: int, owner: int) -> str:
    """The file with the states after consecutive batches."""
    return f"{ARCHIVE}/{first:08d}-{last:08d}.{owner}.json"


def archived_batches(name: str) -> range | None:
    """The batches of a file of the archive from its name; None for any other file."""
    match = _ARCHIVED.fullmatch(name)
    return range(int(match[1]), int(match[2]) + 1) if match else None


def lists_files(name: str) -> bool:
    """Whether a file lists others that a state needs."""
    return manifest_number(name) is not None or archived_batches(name) is not None


def epochs_name(first: int, owner: int) -> str:
    """The file with the epochs from number `first` on."""
    return f"epoch/{first:08d}.{owner}.json"


def logged_by(manifest: Manifest, first: int) -> int:
    """The run that wrote the file with the epochs from number `first` on."""
    return next(by for start, by in reversed(manifest.epochs_by) if start <= first)


def owned(batch: int, owner: int) -> str:
    """The beginning of the names of files that a run writes for a batch; no other run uses it."""
    return f"{batch:08d}.{owner}"


def owner_of(name: str) -> int | None:
    """The run that wrote a file whose name begins with `owned`; None for any other file."""
    match = _OWNED.match(name)
    return int(match[1]) if match else None


def counts(newest: Manifest, name: str) -> bool:
    """Whether the newest state needs a file that it does not name: staged output, or history."""
    if match := _EPOCHS.fullmatch(name):
        first, owner = int(match[1]), int(match[2])
        return first < newest.epochs_logged and logged_by(newest, first) == owner
    return name.startswith("staged/") and f"{newest.batch:08d}" in re.findall(r"\d+", name)


def is_own(name: str) -> bool:
    """Whether a file is one that a checkpoint writes; files of others are never deleted."""
    folder, _, base = name.partition("/")
    if not base:
        return is_temporary(name) and name.startswith(f".{META}.")
    if is_temporary(name) or folder == "staged":
        return True
    named = {"manifest": _MANIFEST, "epoch": _EPOCHS, ARCHIVE: _ARCHIVED}.get(folder)
    return name.endswith(".arrow") if named is None else named.fullmatch(name) is not None
