"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from tidegate.cli.value import OneOf, Whole
from tidegate.errors import OptionError, UnavailableError, likely
from tidegate.query.node import Node
from tidegate.runtime.launch import DEFAULT_MASTER
from tidegate.runtime.script import streams_of
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

Command = TypeVar("Command", bound=Callable[..., Any])


def query_options(command: Command) -> Command:
    """The arguments that say what to run over which data, and where."""
    for option in reversed(
        (
            click.argument("query", metavar="QUERY.sql"),
            click.option(
                "--stream",
                "streams",
                multiple=True,
                metavar="NAME=URI",
                help="A source of a stream: a file, a folder, generator:NAME. Repeat for several.",
            ),
            click.option(
                "--time",
                "times",
                multiple=True,
                metavar="NAME=COLUMN",
                help="The event time column of a stream (default: TIME in the query, else ts).",
            ),
            click.option(
                "--master",
                default=DEFAULT_MASTER,
                show_default=True,
                metavar="M",
                help="A Spark master URL, or none to run in this process without Spark.",
            ),
            click.option(
                "--instances",
                type=Whole(),
                metavar="N",
                help="Parallel instances (default: the master's cores).",
            ),
            click.option(
                "--method",
                type=OneOf(["auto", "scan"]),
                default="auto",
                show_default=True,
                help="How joins compare: with an index where there is one, or every pair.",
            ),
            click.option(
                "--exchange",
                type=OneOf(["auto", "shared", "shuffle"]),
                default="auto",
                show_default=True,
                help="How tasks exchange tuples: files on one host, or a shuffle.",
            ),
            click.option(
                "--routing",
                type=OneOf(["auto", "key", "deal"]),
                default="auto",
                show_default=True,
                help="How joins place tuples: by their key, or dealt out evenly in turn.",
            ),
            click.option(
                "--partitioner",
                type=OneOf(["hash", "shuffle", "pk", "cm", "am", "cam", "lm", "auto"]),
                default="hash",
                show_default=True,
                help="How keyed tuples are partitioned.",
            ),
        )
    ):
        command = option(command)
    return command


def refuse_later(**chosen: str) -> None:
    """Options of later versions: known, checked, and refused unless left at what works today."""
    works = {
        "partitioner": ("hash",),
        "policy": ("fixed",),
    }
    for name, value in chosen.items():
        if value not in works[name]:
            raise UnavailableError(
                f"--{name}",
                f"only {' or '.join(works[name])} can be used",
                value,
                "The others are not available yet.",
            )


@dataclass(frozen=True)
class Pair:
    """One NAME=VALUE option."""

    name: str
    value: str


def pairs(option: str, values: Sequence[str], shape: str) -> list[Pair]:
    """Read repeated NAME=VALUE options."""
    found = []
    for text in values:
        name, sign, value = text.partition("=")
        if not sign or not name.strip() or not value.strip():
            raise OptionError(option, f"must look like {shape}", text)
        found.append(Pair(name.strip(), value.strip()))
    return found


def switches(values: Sequence[str]) -> dict[int, int]:
    """Read repeated BATCH=N options."""
    asked: dict[int, int] = {}
    for pair in pairs("--switch", values, "BATCH=N, for example 3=4"):
        try:
            batch, instances = int(pair.name), int(pair.value)
        except ValueError:
            raise OptionError(
                "--switch", "must look like BATCH=N, for example 3=4", f"{pair.name}={pair.value}"
            ) from None
        if batch in asked:
            raise OptionError(
                "--switch", "a batch can be named once", f"{batch} twice", f"Keep one {batch}=N."
            )
        asked[batch] = instances
    return asked


def read_query(query: str, streams: Sequence[str], times: Sequence[str]) -> Node:
    """The logical query of a script file with its stream options."""
    script = read_script(_text(query))
    uris: dict[str, list[str]] = {}
    for pair in pairs("--stream", streams, "NAME=URI, for example rides=rides.csv"):
        uris.setdefault(pair.name, []).append(pair.value)
    columns = {p.name: p.value for p in pairs("--time", times, "NAME=COLUMN, for example rides=ts")}
    return bind(script, streams_of(script, uris=uris, times=columns))


def _text(query: str) -> str:
    """The text of a script; a byte order mark, as some editors write one, is no part of it."""
    path = Path(query)
    requirement = "the query must be a file with SQL"
    if path.is_dir():
        raise OptionError(query, requirement, "a folder", "Name a file in it.")
    if any(c.isspace() for c in query) and not path.exists():
        remedy = "Write the query into a file and give its name."
        raise OptionError("QUERY.sql", requirement, query, remedy)
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        scripts = sorted(p.name for p in path.parent.glob("*.sql"))
        remedy = likely(path.name, scripts) or "Check the path."
        raise OptionError(query, requirement, "no such file", remedy) from None
    except UnicodeDecodeError as error:
        raise OptionError(
            query,
            "the query must be UTF-8 text",
            f"the byte {error.object[error.start]:#04x} at position {error.start}",
            "Save it as UTF-8.",
        ) from None
    except OSError as error:
        got = error.strerror or str(error)
        raise OptionError(query, "the query must be readable", got, "Check the path.") from None
