"""What a stream says of how its files are read, between a query and the formats.

A `Reading` is the declared columns and the options of one stream. It goes with the stream's
definition to whoever opens a source; what it does not say, the files do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tidegate.errors import OptionError, near
from tidegate.source.encoding import codec_of
from tidegate.source.pattern import Pattern

CSV, JSON, PARQUET, ORC = "csv", "json", "parquet", "orc"
TITLES = {CSV: "CSV", JSON: "JSON", PARQUET: "Parquet", ORC: "ORC"}

CODECS = {"none": "none", "uncompressed": "none", "gzip": "gzip", "gz": "gzip", "zstd": "zstd"}
CODECS |= {"zst": "zstd", "bz2": "bz2", "bzip2": "bz2"}
"""Compressions by the names they are given."""


@dataclass(frozen=True)
class Option:
    """One thing that can be said of how files are read; `read` checks a value of it."""

    name: str
    formats: tuple[str, ...]
    default: object
    read: Callable[[Any, str], object]
    changes_rows: bool = True
    """Whether other rows are read with another value; the name of a compression changes none."""


def _character(value: Any, where: str) -> str:
    text = {"\\t": "\t", "tab": "\t"}.get(value, value)
    if not isinstance(text, str) or len(text) != 1 or not text.isascii() or text in "\r\n\0":
        raise OptionError(where, "must be one ASCII character", repr(value))
    return text


def _quote(value: Any, where: str) -> str:
    return "" if value in ("", None) else _character(value, where)


def _escape(value: Any, where: str) -> str:
    if value != '"':
        raise OptionError(
            where,
            "a quote inside of quotes must be doubled",
            repr(value),
            "Leave the option out, and write the file with doubled quotes.",
        )
    return '"'


def _truth(value: Any, where: str) -> bool:
    known = {"true": True, "false": False}
    found = value if isinstance(value, bool) else known.get(str(value).lower())
    if found is None:
        raise OptionError(where, "must be true or false", repr(value))
    return found


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise OptionError(where, "must be a text", repr(value), "Put it in quotes.")
    return value


def _compression(value: Any, where: str) -> str:
    found = CODECS.get(str(value).lower())
    if found is None:
        raise OptionError(where, "must be a compression", repr(value), near(str(value), CODECS))
    return found


def _pattern(value: Any, where: str) -> Pattern:
    return Pattern.parse(_text(value, where), where)


_TEXTS = (CSV, JSON)
OPTIONS = {
    option.name: option
    for option in (
        Option("sep", (CSV,), ",", _character),
        Option("header", (CSV,), True, _truth),
        Option("nullValue", (CSV,), "", _text),
        Option("quote", (CSV,), '"', _quote),
        Option("escape", (CSV,), '"', _escape),
        Option(
            "encoding", _TEXTS, "utf-8", lambda value, where: codec_of(_text(value, where), where)
        ),
        Option("compression", _TEXTS, None, _compression, changes_rows=False),
        Option("dateFormat", _TEXTS, None, _pattern),
        Option("timestampFormat", _TEXTS, None, _pattern),
    )
}
ALIASES = {name.lower(): name for name in OPTIONS}
ALIASES |= {"delimiter": "sep", "charset": "encoding", "null": "nullValue"}
"""Names as they may be given, in lower case."""


@dataclass(frozen=True)
class Reading:
    """The columns a stream was declared with, None where they are found in its files, and options.

    `options` are those that were given and differ from what holds without them, sorted by name.
    """

    schema: pa.Schema | None = None
    options: tuple[tuple[str, Any], ...] = field(default=())

    @staticmethod
    def of(
        schema: pa.Schema | None,
        options: Mapping[str, Any],
        where: str,
        also: Sequence[str] = (),
    ) -> Reading:
        """Check what was given; the schema is normalised.

        `also` are other names that may be meant by a misspelt one.
        """
        found: dict[str, Any] = {}
        for given, value in options.items():
            name = ALIASES.get(given.lower())
            if name is None:
                known = [*OPTIONS, "delimiter", *also]
                raise OptionError(
                    where, "options must be known", f"option {given}", near(given, known)
                )
            if name in found:
                raise OptionError(where, "an option can be given once", f"{name} twice")
            found[name] = OPTIONS[name].read(value, f"{where}, option {given}")
        if "quote" in found and found["quote"] == found.get("sep", ","):
            raise OptionError(where, "quote and delimiter must differ", repr(found["quote"]))
        kept = {n: v for n, v in found.items() if v != OPTIONS[n].default}
        return Reading(schema, tuple(sorted(kept.items())))

    def get(self, name: str) -> Any:
        """The value of an option."""
        return dict(self.options).get(name, OPTIONS[name].default)

    def check(self, format_: str, where: str) -> None:
        """Refuse options that mean nothing for a format, and types that it cannot hold."""
        for name, _ in self.options:
            if format_ not in OPTIONS[name].formats:
                own = [n for n, o in OPTIONS.items() if format_ in o.formats]
                remedy = f"Options for {TITLES[format_]}: {', '.join(own)}." if own else None
                raise OptionError(
                    where,
                    f"option {name} is for {_and(OPTIONS[name].formats)} files",
                    f"{TITLES[format_]} files",
                    remedy or "Leave it out: the files say how they are to be read.",
                )
        for column in self.schema or () if format_ == CSV else ():
            if pa.types.is_nested(column.type):
                raise OptionError(
                    where,
                    f"column {column.name} must be of a type that one cell can hold",
                    str(column.type),
                    "Declare it STRING.",
                )

    def lines(self) -> list[str]:
        """What changes the rows, for a fingerprint; nothing where all is as without options.

        Declared types are not here: types of columns that a query reads are part of its meaning
        anyhow, declared or not.
        """
        kept = [(n, v) for n, v in self.options if OPTIONS[n].changes_rows]
        return [f"option {name} {value!r}" for name, value in kept]


AS_FOUND = Reading()
"""Nothing is said: the files tell their columns, and text is comma-separated UTF-8."""


def _and(formats: tuple[str, ...]) -> str:
    return " and ".join(TITLES[f] for f in formats)
