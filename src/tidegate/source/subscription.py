"""What a stream asks of a URI, and how its files are read: declared columns and options.

A `Reading` holds the declared columns and the options of one stream. It goes with the stream's
definition to the code that opens a source. The files themselves tell the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tidegate.errors import OptionError, SourceError, near
from tidegate.kafka.schema_registry import check_url
from tidegate.source.text.encoding import codec_of
from tidegate.source.text.pattern import Pattern

CODECS = {"none": "none", "uncompressed": "none", "gzip": "gzip", "gz": "gzip", "zstd": "zstd"}
CODECS |= {"zst": "zstd", "bz2": "bz2", "bzip2": "bz2"}
"""Compressions by all names that users may write."""


@dataclass(frozen=True)
class Option:
    """One option of how files are read; `read` checks and converts its value.

    Formats list the options they take (`FileFormat.options`, `ValueFormat.options`).
    """

    name: str
    default: object
    read: Callable[[Any, str], object]
    changes_rows: bool = True
    """Whether the value affects the rows that are read; the name of a compression does not."""


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


def _value_format(value: Any, where: str) -> str:
    from tidegate.source.message.registry import VALUE_FORMATS  # which imports this module

    found = str(value).lower()
    if found not in VALUE_FORMATS:
        raise OptionError(where, "must be a format", repr(value), near(found, VALUE_FORMATS))
    return found


def _registry(value: Any, where: str) -> str:
    return check_url(_text(value, where), where)


def _version(value: Any, where: str) -> str:
    found = str(value).lower()
    if found != "latest" and not (found.isascii() and found.isdigit() and int(found) > 0):
        raise OptionError(where, "must be latest or a whole number from 1 on", repr(value))
    return found


OPTIONS = {
    option.name: option
    for option in (
        Option("sep", ",", _character),
        Option("header", True, _truth),
        Option("nullValue", "", _text),
        Option("quote", '"', _quote),
        Option("escape", '"', _escape),
        Option("encoding", "utf-8", lambda value, where: codec_of(_text(value, where), where)),
        Option("compression", None, _compression, changes_rows=False),
        Option("dateFormat", None, _pattern),
        Option("timestampFormat", None, _pattern),
        Option("format", "json", _value_format),
        Option("registry", None, _registry, changes_rows=False),
        Option("subject", None, _text),
        Option("version", None, _version),
        Option("schema", None, _text, changes_rows=False),
        Option("message", None, _text),
    )
}
MESSAGE_OPTIONS = ("format", "registry", "subject", "version", "schema", "message")
"""The options that only values of messages take."""

ALIASES = {name.lower(): name for name in OPTIONS}
ALIASES |= {"delimiter": "sep", "charset": "encoding", "null": "nullValue"}
"""All names that users may write, in lower case."""


@dataclass(frozen=True)
class Reading:
    """The declared columns of a stream, None where its files tell them, and its options.

    `options` holds those that differ from their default, sorted by name.
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
        """Check columns, which are normalised, and options.

        A message about an unknown option also suggests names in `also`.
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

    def refuse_nested(self, where: str) -> None:
        """Refuse declared columns of nested types, for a format whose values are single cells."""
        for column in self.schema or ():
            if pa.types.is_nested(column.type):
                raise OptionError(
                    where,
                    f"column {column.name} must be of a type that one cell can hold",
                    str(column.type),
                    "Declare it STRING.",
                )

    def lines(self) -> list[str]:
        """The options that change the rows, for a fingerprint; empty without options.

        Declared types are not here: the types of the columns that a query reads are in its
        fingerprint anyway, declared or not.
        """
        kept = [(n, v) for n, v in self.options if OPTIONS[n].changes_rows]
        return [f"option {name} {value!r}" for name, value in kept]


AS_FOUND = Reading()
"""No columns and no options: files tell their columns, and text is comma-separated UTF-8."""


@dataclass(frozen=True)
class Subscription:
    """What a stream asks of one URI, for the connector of its scheme.

    `where` names stream and URI in messages. `time` is the time column, None to open it only for
    its columns. With `follow`, rows that come later count too.
    """

    uri: str
    where: str
    time: str | None
    follow: bool
    reading: Reading = AS_FOUND

    def refuse_reading(self, what: str, remedy: str) -> None:
        """Refuse declared columns and options, for a source that knows its own columns."""
        if self.reading != AS_FOUND:
            must = "only files can be read with declared columns and options"
            raise SourceError(self.where, must, what, remedy)
