"""The folder for temporary files of a run of the tests: in memory, where syncing costs nothing.

Thousands of tests write checkpoints, each of which is synced to the disk several times a batch.
What must be synced, and when, is asked of a disk that takes note (`tests/driver/durable.py`); the
others need not wait for one. The folder is that of `TMPDIR`, so that all processes of a run have
it. It goes with a run in which all tests passed; that of another stays until the next run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

MEMORY = Path("/dev/shm")
NAME = "tidegate-tests-"
LEAST_BYTES = 2 << 30
"""What must be free: a run takes a quarter of it, and containers often have no more than 64 MB."""


def enter() -> Path | None:
    """Make the folder, and take it for all temporary files from here on; None where it is on disk.

    A `TMPDIR` that is set already is what somebody wants.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return None
    _clean()
    if shutil.disk_usage(MEMORY).free < LEAST_BYTES:
        return None
    folder = MEMORY / f"{NAME}{os.getpid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None  # to be found anew
    return folder


def leave(folder: Path) -> None:
    """Remove the folder with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)


def _clean() -> None:
    """Remove what runs have left that are not there any more."""
    for folder in MEMORY.glob(f"{NAME}*"):
        with suppress(OSError, ValueError):  # somebody else's, or of another name
            if not Path("/proc", str(int(folder.name.removeprefix(NAME)))).exists():
                leave(folder)
