"""The SQL of a command line: from a file, from standard input, or after -e."""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tidegate.cli.option.value import PathText
from tidegate.errors import OptionError, UserError, likely
from tidegate.sql.script import Script, read_script

STANDARD_INPUT = "-"
_BEHIND = "-e"
_FILE = "the query must be a file with SQL"


@dataclass(frozen=True)
class QueryText:
    """A query as it was given; read only when needed.

    `words` repeat it on a command line, `title` is its name for people, and `place` is where errors
    in its text point.
    """

    words: tuple[str, ...]
    title: str
    place: str
    read: Callable[[], str]
    path: Path | None = None

    def __post_init__(self) -> None:
        # Standard input can be read once, and a file may change while its query runs.
        object.__setattr__(self, "read", functools.cache(self.read))

    @staticmethod
    def of_file(name: str) -> QueryText:
        """The query in a file."""
        path = Path(name)
        return QueryText((name,), path.name, "SQL", lambda: _file_text(name), path)

    @property
    def written(self) -> str:
        """The words that give the query again on a command line."""
        return shlex.join(self.words)

    @property
    def stem(self) -> str:
        """The title without a file extension."""
        return Path(self.title).stem

    def script(self) -> Script:
        """The statements; mistakes name their place."""
        text = self.read()
        try:
            return read_script(text)
        except UserError as mistake:
            if not mistake.where.startswith("SQL"):
                raise
            where = self.place + mistake.where.removeprefix("SQL")
            raise type(mistake)(where, mistake.requirement, mistake.got, mistake.remedy) from None


def query_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the argument QUERY.sql and the option -e to a command, which gets one QueryText."""

    @functools.wraps(command)
    def called(*, query: QueryText | None, **others: Any) -> Any:
        return command(query=_needed(query), **others)

    return optional_query(called)


def optional_query(command: Callable[..., Any]) -> Callable[..., Any]:
    """As `query_argument`, for a command that works without a query and then gets None."""

    @functools.wraps(command)
    def called(*, query: str | None, statements: tuple[str, ...], **others: Any) -> Any:
        return command(query=_given(query, statements), **others)

    option = click.option(
        _BEHIND,
        "statements",
        multiple=True,
        metavar="SQL",
        help="The query itself, in place of QUERY.sql; with - for QUERY.sql it comes from "
        "standard input.",
    )
    return click.argument("query", type=PathText(), metavar="QUERY.sql", required=False)(
        option(called)
    )


def _needed(query: QueryText | None) -> QueryText:
    if query is None:
        command = click.get_current_context().info_name
        remedy = (
            f"Name a file, or write -e 'SELECT ...'; `tidegate {command} --help` lists what there "
            "is."
        )
        raise OptionError(str(command), "needs QUERY.sql", "none", remedy)
    return query


def _given(query: str | None, statements: Sequence[str]) -> QueryText | None:
    if len(statements) > 1:
        got = f"{len(statements)} of them"
        raise OptionError(_BEHIND, "can be given once", got, "Put ; between statements.")
    if statements and query is not None:
        raise OptionError(
            _BEHIND, "stands in place of QUERY.sql", f"{query} beside it", "Leave one of them out."
        )
    if statements:
        return QueryText(
            (_BEHIND, statements[0]),
            "query",
            _BEHIND,
            lambda: _decoded(_BEHIND, os.fsencode(statements[0])),
        )
    if query is None:
        return None
    if query == STANDARD_INPUT:
        return QueryText((STANDARD_INPUT,), "query", "standard input", _standard_input)
    return QueryText.of_file(query)


def _standard_input() -> str:
    return _decoded("standard input", sys.stdin.buffer.read())


def _file_text(name: str) -> str:
    path = Path(name)
    if path.is_dir():
        raise OptionError(name, _FILE, "a folder", "Name a file in it.")
    if any(c.isspace() for c in name) and not path.exists():
        remedy = "Put -e before the query, or write it into a file and give its name."
        raise OptionError("QUERY.sql", _FILE, name, remedy)
    try:
        return _decoded(name, path.read_bytes())
    except FileNotFoundError:
        scripts = sorted(p.name for p in path.parent.glob("*.sql"))
        remedy = likely(path.name, scripts) or "Check the path."
        raise OptionError(name, _FILE, "no such file", remedy) from None
    except OSError as error:
        got = error.strerror or str(error)
        raise OptionError(name, "the query must be readable", got, "Check the path.") from None


def _decoded(where: str, content: bytes) -> str:
    """The text of a script, without the byte order mark that some editors write."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OptionError(
            where,
            "the query must be UTF-8 text",
            f"the byte {error.object[error.start]:#04x} at position {error.start}",
            "Save it as UTF-8.",
        ) from None
