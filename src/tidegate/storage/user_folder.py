"""The folder of this user for what outlives a process: addresses of runs, a token, a history."""

from __future__ import annotations

import os
from pathlib import Path


def user_folder() -> Path:
    """By the XDG rules, so a relative XDG_STATE_HOME is ignored. The folder may not exist yet."""
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    home = given if given.is_absolute() else Path.home() / ".local" / "state"
    return home / "tidegate"
