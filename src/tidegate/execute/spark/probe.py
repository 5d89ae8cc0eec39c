"""What an executor is asked before the first batch, in a worker that may not have Tidegate.

The module is sent as it is, by value, so it needs the standard library only; an answer is plain
data.
"""

from __future__ import annotations

import importlib
import os
import pickle
import platform
import socket
import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

PYTHON, CODE, CHECKPOINT, SOURCE, OUTPUT = "python", "code", "checkpoint", "source", "output"
"""What can be wrong, in the order in which it is told."""

COMPARED = ("pyarrow", "numpy", "pandas")
"""Packages whose versions are told."""


class Question(NamedTuple):
    """What to look at, as plain values: no class of Tidegate's travels with it but in `code`.

    `folders` are (kind, name, file, its bytes): the file is to be read, and others beside it
    written. `files` are to be read. `code` is pickled, (kind, name, function) for each, to be
    called where Tidegate is there.
    """

    folders: Sequence[tuple[str, str, str, bytes]]
    files: Sequence[str]
    code: bytes


def look(question: tuple[Any, ...], numbers: Iterable[int]) -> Iterator[dict[str, Any]]:
    """In a worker: what is wrong here, as (kind, what, why), and who says so."""
    folders, files, code = question
    problems: list[tuple[str, str, str]] = []
    versions = {"python": platform.python_version()}
    try:
        versions["tidegate"] = importlib.import_module("tidegate").__version__
        for name in COMPARED:
            versions[name] = importlib.import_module(name).__version__
    except Exception as error:
        problems.append((PYTHON, sys.executable, _told(error)))
    for kind, name, file, data in folders:
        try:
            _use(file, data)
        except OSError as error:
            problems.append((kind, name, _told(error)))
    for path in files:
        try:
            with open(path, "rb") as opened:
                opened.read(1)
        except OSError as error:
            problems.append((SOURCE, path, _told(error)))
    if "tidegate" in versions:
        problems += _called(code)
    for _ in numbers:
        host = socket.gethostname()
        yield {"host": host, "python": sys.executable, "versions": versions, "problems": problems}


def _called(code: bytes) -> list[tuple[str, str, str]]:
    try:
        checks = pickle.loads(code)
    except Exception as error:
        return [(CODE, "", _told(error))]
    problems = []
    for kind, name, function in checks:
        try:
            function()
        except Exception as error:
            problems.append((kind, name, _told(error)))
    return problems


def _use(file: str, data: bytes) -> None:
    """Read what the driver has left in a folder, and write there."""
    with open(file, "rb") as there:
        if there.read() != data:
            raise OSError("another folder of the same name")
    own = os.path.join(os.path.dirname(file), f".tidegate-{uuid.uuid4().hex}.tmp")
    with open(own, "xb"):
        os.unlink(own)


def _told(error: BaseException) -> str:
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return f"{type(error).__name__}: {error}"
