"""Finds the name this program was called by, for messages that suggest the next command."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

COMMAND = "tidegate"


def called_as(started: str | None = None) -> str:
    """The words that run this command line from the current folder: a name, a path, or a module.

    `started` is the program's path, by default `sys.argv[0]`.
    """
    script = Path(started if started is not None else sys.argv[0])
    if script.name == COMMAND:
        return _reached(script, COMMAND)
    if script.name != "__main__.py" and _is_here(COMMAND):
        return COMMAND
    return f"{python()} -m {COMMAND}"


def python() -> str:
    """The words that run this process's Python from the current folder."""
    return _reached(Path(sys.executable), "python")


def _reached(program: Path, name: str) -> str:
    """A program's name if the shell finds it under that, else its shortest path."""
    found = shutil.which(name)
    if found is not None and _same(Path(found), program):
        return name
    path = Path(os.path.abspath(program))  # not resolved: a link in a venv means the venv
    here = Path.cwd()
    if path.is_relative_to(here):
        near = path.relative_to(here)
        return shlex.quote(str(near) if len(near.parts) > 1 else f"./{near}")
    return shlex.quote(str(path))


def _is_here(name: str) -> bool:
    """Whether the shell finds this Python's own command under the name."""
    found = shutil.which(name)
    return found is not None and _same(Path(found).parent, Path(sys.executable).parent)


def _same(one: Path, other: Path) -> bool:
    """Whether two paths name one file, without following a link at their end.

    The Python of a venv is a link to the system's, but it is not the same program.
    """
    ends = (Path(os.path.realpath(p.parent)) / p.name for p in (one, other))
    first, second = (Path(os.path.abspath(p)) for p in ends)
    return first == second
