"""Options of lineage events, checked before anything starts."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from tidegate.calendar.duration import duration_us
from tidegate.driver.lineage.event import run_id
from tidegate.errors import OptionError, QueryError, StateError
from tidegate.remote.scheme import refuse_keys, scheme_of, shown
from tidegate.state.store import Store

if TYPE_CHECKING:
    from tidegate.driver.lineage.delivery import Receiver

EVERY_S = 600.0
"""The default for the shortest time between RUNNING events."""

KEY = "OPENLINEAGE_API_KEY"
"""The environment variable with the server's key; with _FILE appended, the path of a key file."""

_PATH = "/api/v1/lineage"
"""The default path of a server's URL."""


@dataclass(frozen=True)
class LineageOptions:
    """Where events go, and the job that they are about.

    `job` is the job's name; `sql` is the query's text, None for a query built in Python.
    """

    target: str
    every_s: float = EVERY_S
    job: str = ""
    sql: str | None = None

    @staticmethod
    def run_before(store: Store) -> str | None:
        """The id of the last run on a checkpoint; None for a new checkpoint."""
        try:
            numbers = store.numbers()
            return run_id(store.location, store.manifest(numbers[-1])) if numbers else None
        except StateError:  # whoever opens the checkpoint says what to do about it
            return None

    def receiver(self) -> Receiver:
        """The receiver for the target. Reads the key now; it is stored nowhere else."""
        from tidegate.driver.lineage.delivery import FileReceiver, HttpReceiver  # needs a client

        if scheme_of(self.target) not in ("http", "https"):
            return FileReceiver(_path(self.target))
        parts = urlsplit(self.target)
        path = _PATH if parts.path in ("", "/") else parts.path
        return HttpReceiver(urlunsplit(parts._replace(path=path)), _key())


def lineage_options(
    target: str | os.PathLike[str] | None,
    every: str | timedelta | float | None,
    where: str,
    job: str,
    sql: str | None = None,
) -> LineageOptions | None:
    """The checked options; None without a target."""
    rate = f"{where}-every" if where.startswith("-") else f"{where}_every"
    if target is None:
        if every is not None:
            raise OptionError(rate, f"needs {where}", "none", f"Give {where}, a file or a URL.")
        return None
    text = os.fspath(target)
    _check(text, where)
    return LineageOptions(text, _every_s(every, rate), job, sql)


def program_job(title: str) -> str:
    """The job name of a query in a program: the program's file name and the query's title."""
    program = Path(sys.argv[0] if sys.argv else "").stem
    return f"{program}.{title}" if program else title


def _check(text: str, where: str) -> None:
    refuse_keys(text, where, OptionError)
    scheme = scheme_of(text)
    if scheme in ("http", "https"):
        if not urlsplit(text).hostname:
            example = f"{scheme}://host:5000"
            raise OptionError(where, "a URL must name a server", shown(text), f"Write {example}.")
        return
    if scheme not in (None, "file"):
        must = "must be a file, or a URL of http or https"
        raise OptionError(where, must, shown(text), "Write lineage.jsonl or http://host:5000.")
    path = Path(_path(text))
    if not text.strip() or path.is_dir():
        got = f"the folder {path}" if text.strip() else repr(text)
        raise OptionError(where, "must be a file or a URL", got, "Add a name.")
    if not path.absolute().parent.is_dir():
        got = f"no folder {path.parent}"
        raise OptionError(where, "must be in a folder that exists", got, "Make it first.")


def _path(text: str) -> str:
    return urlsplit(text).path if scheme_of(text) == "file" else text


def _every_s(every: str | timedelta | float | None, where: str) -> float:
    if every is None:
        return EVERY_S
    try:
        return duration_us(every, where) / 1e6
    except QueryError as error:
        raise OptionError(error.where, error.requirement, error.got, error.remedy) from None


def _key() -> str | None:
    file, name = os.environ.get(f"{KEY}_FILE"), KEY
    key = os.environ.get(KEY, "")
    if file:
        name = f"{KEY}_FILE"
        try:
            key = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            must = "must name a file with the key of the lineage server"
            raise OptionError(name, must, str(error), "Check the path.") from error
    key = key.strip()
    if not (key.isascii() and (key.isprintable() or not key)):
        got = "other characters"  # never the key itself
        raise OptionError(name, "must be one line of ASCII", got, "Copy the key again.")
    return key or None
