"""Reads JSON and CSV values by the rules of text files: one object or one record in each value.

Values are joined to lines and parsed at once. A JSON value may have line feeds between its tokens;
each becomes a tab, so that one value stays one line. That changes nothing: a tab is white space
there too and, like a line feed, it is not allowed inside a string.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.errors import SourceError
from tidegate.kafka.schema_registry import SchemaRegistry
from tidegate.kafka.wire import HEADER_BYTES
from tidegate.source.message.schema_lookup import registry_of, unregistered
from tidegate.source.message.value import ValueFormat, ValueLayout, ValueLook
from tidegate.source.shape import settled
from tidegate.source.text.block import split_lines
from tidegate.source.text.cell import fields_of
from tidegate.source.text.csv import CsvLayout
from tidegate.source.text.dialect import Dialect
from tidegate.source.text.encoding import UTF_8, beginning, to_utf8
from tidegate.source.text.json import JsonLayout, infer
from tidegate.source.text.layout import TextLayout

_EMPTY = "an empty value"
_TEXT = ("encoding", "dateFormat", "timestampFormat")


@dataclass(frozen=True)
class TextValues(ValueLayout):
    """Values that are parsed as the lines of a text; `codec` is their encoding."""

    layout: TextLayout
    schema: pa.Schema
    types_from: str
    codec: str

    @abstractmethod
    def lines(self, values: Sequence[bytes]) -> tuple[bytes, dict[int, str]]:
        """Join values in UTF-8 to a text of one record each; by place, why others are left out."""

    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> tuple[pa.Table, dict[int, str]]:
        data, wrong = self.lines(in_utf8(values, self.codec))
        rows = len(values) - len(wrong)
        if not rows:
            return schema.empty_table(), wrong
        parsed = self.layout.parse(data, rows, schema)
        if parsed.faults:
            places = np.delete(np.arange(len(values)), sorted(wrong))
            wrong |= {int(places[f.place]): f.why for f in parsed.faults}
        return parsed.table, wrong

    def raw(self, value: bytes) -> str:
        return in_utf8([value], self.codec)[0].decode("utf-8", "replace")


@dataclass(frozen=True)
class JsonValues(TextValues):
    """One JSON object in a value; it may span several lines.

    With a registry the object follows the id of a schema, with which its writer has checked it.
    """

    registry: SchemaRegistry | None = None

    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> tuple[pa.Table, dict[int, str]]:
        if self.registry is None:
            return super().decode(values, schema)
        wrong = unregistered(self.registry, values, "JSON")
        places = [i for i in range(len(values)) if i not in wrong]
        table, faults = super().decode([values[i][HEADER_BYTES:] for i in places], schema)
        return table, wrong | {places[i]: why for i, why in faults.items()}

    def lines(self, values: Sequence[bytes]) -> tuple[bytes, dict[int, str]]:
        return join_objects(values)


@dataclass(frozen=True)
class CsvValues(TextValues):
    """One record of CSV in a value, with or without a line end."""

    layout: CsvLayout

    def lines(self, values: Sequence[bytes]) -> tuple[bytes, dict[int, str]]:
        data = b"\n".join(values)
        starts = np.cumsum([0, *(len(v) + 1 for v in values)])[:-1]
        if np.array_equal(self.layout.records(data, True).starts, starts):
            return data, {}
        wrong = {i: why for i, v in enumerate(values) if (why := self._fault(v)) is not None}
        return b"\n".join(v.rstrip(b"\r\n") for i, v in enumerate(values) if i not in wrong), wrong

    def _fault(self, value: bytes) -> str | None:
        """Why a value is not one record, None where it is; cheap without quotes and line ends."""
        quote = self.layout.dialect.quote.encode()
        if not value.strip(b"\r\n"):
            return _EMPTY
        quoted = quote != b"" and quote in value
        if not quoted and b"\n" not in value and b"\r" not in value:
            return None
        found = self.layout.records(value, True)
        if len(found) != 1:
            return f"one record must be in a value, got {len(found)}"
        if found.starts[0] or value[found.stops[0] :].strip(b"\r\n"):
            return "one record must be in a value, got line ends before it"
        text = value[: found.stops[0]].decode("utf-8", "replace")
        fields = fields_of(text, self.layout.dialect.sep, self.layout.dialect.quote)
        return fields if isinstance(fields, str) else None


class JsonValueFormat(ValueFormat):
    """JSON; without declared columns the keys of the first values are the columns."""

    name, title = "json", "JSON"
    options = (*_TEXT, "registry")

    def open(self, look: ValueLook) -> JsonValues:
        codec, registry = look.reading.get("encoding"), registry_of(look)
        layout = JsonLayout(Dialect.of(look.reading, UTF_8, look.where))
        schema, types_from = look.reading.schema, "declared"
        if schema is None:
            seen = _seen(look, codec, 0 if registry is None else HEADER_BYTES)
            data, wrong = join_objects(seen)
            found = infer(data, split_lines(data, True), look.time, layout.dialect)
            if found is None:
                raise SourceError(
                    look.where,
                    "a value must be one JSON object",
                    repr(seen[0][:80].decode("utf-8", "replace")),
                    "Say another format in OPTIONS, or declare the columns.",
                )
            schema, types_from = settled(found), _inferred(len(seen) - len(wrong))
        return JsonValues(layout, schema, types_from, codec, registry)


class CsvValueFormat(ValueFormat):
    """CSV without a header; columns are declared in their order, or named c1, c2 and so on."""

    name, title = "csv", "CSV"
    nested = False
    options = ("sep", "nullValue", "quote", "escape", *_TEXT)

    def open(self, look: ValueLook) -> CsvValues:
        codec = look.reading.get("encoding")
        dialect = Dialect.of(look.reading, UTF_8, look.where)
        schema = look.reading.schema
        if schema is not None:
            layout = CsvLayout(tuple(schema.names), dialect, inferred=False)
            return CsvValues(layout, schema, "declared", codec)
        seen = _seen(look, codec)
        fields = fields_of(seen[0].decode("utf-8", "replace"), dialect.sep, dialect.quote)
        width = len(fields) if isinstance(fields, list) else 1
        layout = CsvLayout(tuple(f"c{i + 1}" for i in range(width)), dialect)
        data, wrong = CsvValues(layout, pa.schema([]), "", codec).lines(seen)
        schema = settled(layout.infer(data, look.time))
        return CsvValues(layout, schema, _inferred(len(seen) - len(wrong)), codec)


def join_objects(values: Sequence[bytes]) -> tuple[bytes, dict[int, str]]:
    """Join JSON values to lines; by place, the empty ones, which are left out."""
    # NUL is legal nowhere in JSON, so it can stand between the values while tabs are put in.
    one_line = b"\0".join(values).replace(b"\n", b"\t")
    data = one_line.replace(b"\0", b"\n")
    if data.count(b"\n") == len(values) - 1 and len(split_lines(data, True)) == len(values):
        return data, {}
    lines = [v.replace(b"\n", b"\t") for v in values]
    wrong = {i: _EMPTY for i, line in enumerate(lines) if not line.strip()}
    return b"\n".join(line for line in lines if line.strip()), wrong


def in_utf8(values: Sequence[bytes], codec: str) -> Sequence[bytes]:
    """Convert values to UTF-8, without a byte order mark; values in UTF-8 stay as they are."""
    if codec == UTF_8:
        return values
    found = []
    for value in values:
        own, begin = beginning(value, codec)
        found.append(to_utf8(value[begin:], own))
    return found


def _seen(look: ValueLook, codec: str, skip: int = 0) -> Sequence[bytes]:
    """The sample in UTF-8 without empty values; the first `skip` bytes of each are cut off."""
    seen = [v for v in in_utf8([v[skip:] for v in look.sample() if v], codec) if v.strip()]
    if not seen:
        raise SourceError(
            look.where,
            "a value must be there to tell the columns from",
            "none",
            "Declare the columns, or write a first value.",
        )
    return seen


def _inferred(rows: int) -> str:
    return "inferred from the first " + ("value" if rows == 1 else f"{rows:,} values")
