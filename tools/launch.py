"""Becomes a process of a cluster: it dies with who started it, and may have a /tmp of its own.

    python launch.py -- COMMAND...
    unshare --mount python launch.py OWN KEPT... -- COMMAND...

OWN is what it sees as /tmp, in its mount namespace; of the real /tmp it sees the folders KEPT.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
TMP = Path("/tmp")


def die_with_parent() -> None:
    """Have the kernel kill this process, or what it becomes, when its parent is gone."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def mount(*words: str | Path) -> None:
    subprocess.run(["mount", *map(str, words)], check=True)


def replace_tmp(own: Path, kept: list[Path]) -> None:
    """Put a folder in the place of /tmp, in this namespace alone."""
    mount("--make-rprivate", "/")
    for folder in kept:
        if folder.is_relative_to(TMP):
            place = own / folder.relative_to(TMP)
            place.mkdir(parents=True, exist_ok=True)
            mount("--rbind", folder, place)
    mount("--rbind", own, TMP)


if __name__ == "__main__":
    split = sys.argv.index("--")
    if split > 1:
        own, *kept = (Path(word) for word in sys.argv[1:split])
        replace_tmp(own, kept)
    die_with_parent()  # after the namespace: new rights would forget it
    command = sys.argv[split + 1 :]
    os.execv(command[0], command)
