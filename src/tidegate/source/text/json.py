"""Reads JSON lines: one object per line.

Keys that an object lacks are NULL; keys that the schema lacks are ignored. Times are texts in
ISO 8601, in UTC unless they say otherwise. Nested values become structs and lists.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pajson

from tidegate.errors import SourceError
from tidegate.schema import TIME, a_type
from tidegate.source.format import Look
from tidegate.source.text.block import Records, split_lines
from tidegate.source.text.depth import TOO_DEEP, has_deep, is_deep
from tidegate.source.text.dialect import USUAL, Dialect
from tidegate.source.text.encoding import is_utf8, to_utf8
from tidegate.source.text.event_time import mostly_times
from tidegate.source.text.format import Head, TextFormat
from tidegate.source.text.layout import RawCells, TextLayout, misread

_OPEN, _CLOSE = 123, 125
_INT64 = range(-(2**63), 2**63)
_FEW = 64
_NO_OBJECT = "a line must be one JSON object"


@dataclass(frozen=True)
class JsonLayout(TextLayout):
    """One JSON object per line; the dialect gives the form of times and dates, and encoding."""

    dialect: Dialect = USUAL

    def records(self, data: bytes, final: bool) -> Records:
        return split_lines(data, final)

    def read_regular(self, data: bytes, rows: int, schema: pa.Schema) -> pa.Table | None:
        table = _read_all(data, split_lines(data, True), schema)
        return table if table is not None and table.num_rows == rows else None

    def read_cells(self, data: bytes, records: Records, schema: pa.Schema) -> RawCells:
        """As in `TextLayout`, in ever smaller parts down to lines; times and dates stay texts."""
        sieve = _Sieve(schema)
        sieve.take(records.of(data), 0)
        columns = [sieve.column(name) for name in schema.names]
        return RawCells(columns, np.array(sieve.places, np.int64), sieve.reasons)

    def convert(self, field: pa.Field, cells: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        if cells.type == field.type:
            return cells, {}
        values = self.dialect.convert(cells, field.type)
        odd = misread(cells, values)
        return values, {i: f"{cells[i].as_py()!r} is not {a_type(field.type)}" for i in odd}


class JsonFormat(TextFormat):
    """JSON lines; the keys of the first objects are the columns."""

    name, title = "json", "JSON"
    loose = True

    def read_head(
        self, data: bytes, dialect: Dialect, whole: bool, final: bool, look: Look
    ) -> Head | None:
        layout = JsonLayout(dialect)
        found = layout.split(data, final)
        if not len(found):
            return None
        first, schema = data[found.starts[0] : found.stops[0]], look.reading.schema
        if schema is None:
            data = to_utf8(data[: found.used], dialect.codec)
            schema = infer(data, split_lines(data, True), look.time, dialect)
        if schema is not None:
            return Head(layout, 0, schema, first, len(found))
        if not whole:
            return None
        raise SourceError(
            look.where,
            "each line must be one JSON object",
            _found_instead(split_lines(data, True).of(data)[0]),
            "Write one object per line, for an array with: jq -c '.[]' FILE.",
        )


def _found_instead(line: bytes) -> str:
    """Describe a line that is not an object, or cannot be read."""
    if is_deep(line):
        return f"one that is {TOO_DEEP}"
    array = line.startswith(b"[")
    return "a JSON array" if array else repr(line[:80].decode("utf-8", "replace"))


def _regular(data: bytes, records: Records) -> bool:
    """Whether each line begins and ends like an object, none is too deep, and all is UTF-8.

    If so, and if Arrow finds as many objects as there are lines, then each line is one object:
    between `}` and `{` a line feed can only be outside of objects.
    """
    text = np.frombuffer(data, np.uint8)
    if not (text[records.starts] == _OPEN).all() or not (text[records.stops - 1] == _CLOSE).all():
        return False
    return not has_deep(data, len(records)) and is_utf8(data)


def _read_all(data: bytes, records: Records, schema: pa.Schema | None) -> pa.Table | None:
    """The rows that Arrow reads, where it reads one object from each line; None where not."""
    if not _regular(data, records):
        return None
    try:
        table = _read(data, schema)
    except pa.ArrowInvalid:
        return None
    return table if table.num_rows == len(records) else None


def _read(data: bytes, schema: pa.Schema | None) -> pa.Table:
    explicit = None
    if schema is not None:
        explicit = pa.schema([(f.name, _raw_type(f.type)) for f in schema])
    return pajson.read_json(
        pa.BufferReader(data),
        read_options=pajson.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pajson.ParseOptions(
            explicit_schema=explicit,
            unexpected_field_behavior="infer" if explicit is None else "ignore",
        ),
    )


def _raw_type(type_: pa.DataType) -> pa.DataType:
    """The type to ask of Arrow's reader: times and dates are texts in JSON."""
    return pa.string() if type_ in (TIME, pa.date32()) else type_


class _Sieve:
    """Separates lines that Arrow can read, kept as tables, from others, kept as reasons.

    Times stay texts. `places` has the places of the lines that were read, in the order of rows.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.places: list[int] = []
        self.reasons: dict[int, str] = {}
        self._tables: list[pa.Table] = []

    def column(self, name: str) -> pa.Array:
        type_ = _raw_type(self.schema.field(name).type)
        chunks = [c for t in self._tables for c in t.column(name).chunks]
        return pa.chunked_array(chunks, type_).combine_chunks()

    def take(self, lines: Sequence[bytes], first: int) -> None:
        """Take lines at the places from `first` on: all at once, else by halves, else singly."""
        if self._accepted(lines, range(first, first + len(lines))):
            return
        if len(lines) > _FEW:
            half = len(lines) // 2
            self.take(lines[:half], first)
            self.take(lines[half:], first + half)
            return
        # Few lines are left. Python's parser gives the reasons, and what it accepts goes to Arrow
        # once more together; only if that fails is each line tried alone.
        faults = {i: why for i, line in enumerate(lines) if (why := _fault(line, self.schema))}
        self.reasons.update({first + i: why for i, why in faults.items()})
        sound = [i for i in range(len(lines)) if i not in faults]
        if self._accepted([lines[i] for i in sound], [first + i for i in sound]):
            return
        for i in sound:
            if not self._accepted([lines[i]], [first + i]):
                self.reasons[first + i] = self._complaint(lines[i])

    def _accepted(self, lines: Sequence[bytes], places: Sequence[int]) -> bool:
        """Whether Arrow reads each of the lines as one object; then they are kept."""
        if not lines:
            return True
        data = b"\n".join(lines)
        records = split_lines(data, True)
        table = _read_all(data, records, self.schema) if len(records) == len(lines) else None
        if table is not None:
            self._tables.append(table)
            self.places += places
        return table is not None

    def _complaint(self, line: bytes) -> str:
        try:
            _read(line, self.schema)
        except pa.ArrowInvalid as error:
            found = str(error).removeprefix("JSON parse error: ").removesuffix(" in row 0")
            return (self._misfit(line) if found.startswith("Failed to convert") else None) or found
        return _NO_OBJECT

    def _misfit(self, line: bytes) -> str | None:
        """Name the column with a value of the right kind that does not fit its type."""
        values = _object(line)
        for field in self.schema:
            try:
                _read(line, pa.schema([field]))
            except pa.ArrowInvalid:
                value = values.get(field.name) if isinstance(values, dict) else None
                return f"column {field.name}: {json.dumps(value)} is not {a_type(field.type)}"
        return None


def _fault(line: bytes, schema: pa.Schema) -> str | None:
    """Why a line cannot be read, as far as that shows without Arrow; cheap and lenient."""
    found = _object(line)
    if isinstance(found, str):
        return found
    for field in schema:
        value = found.get(field.name)
        if value is not None and not _fits(value, field.type):
            return f"column {field.name}: {json.dumps(value)} is not {a_type(field.type)}"
    return None


def _object(line: bytes) -> dict[str, Any] | str:
    """The object of a line, or why it is none; {} for number forms that only Arrow reads."""
    if is_deep(line):
        return TOO_DEEP
    try:
        value = json.loads(line.decode())
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start} of the line"
    except ValueError as error:
        return {} if b"Inf" in line else f"not JSON: {error}"
    return value if isinstance(value, dict) else _NO_OBJECT


def _fits(value: object, type_: pa.DataType) -> bool:
    """Whether Arrow may accept a value for this type; never False where it would."""
    if value is None:
        return True
    if pa.types.is_struct(type_):
        return isinstance(value, dict) and all(_fits(value.get(f.name), f.type) for f in type_)
    if pa.types.is_list(type_):
        return isinstance(value, list) and all(_fits(v, type_.value_type) for v in value)
    if pa.types.is_boolean(type_):
        return isinstance(value, bool)
    if pa.types.is_integer(type_):
        return isinstance(value, int) and not isinstance(value, bool) and value in _INT64
    if pa.types.is_floating(type_):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if pa.types.is_decimal(type_):
        return isinstance(value, (int, float, str)) and not isinstance(value, bool)
    return isinstance(value, str)


def infer(data: bytes, records: Records, time: str | None, dialect: Dialect) -> pa.Schema | None:
    """Infer columns from a sample; null where only nulls were seen. None without any object.

    Where values of one key are of several kinds, the most frequent kind counts.
    """
    table = _read_all(data, records, None)
    lines = [] if table is not None else _agreeing(records.of(data))
    schema = _halves_schema(lines) if table is None else table.schema
    if schema is None:
        return None
    fields = []
    for field in schema:
        type_ = TIME if pa.types.is_timestamp(field.type) else _settled(field.type, top=True)
        if type_ in (pa.string(), pa.null()):
            text = _texts(lines, field.name) if table is None else table.column(field.name)
            type_ = TIME if _holds_times(text, field.name == time, dialect) else type_
        fields.append((field.name, type_))
    return pa.schema(fields)


def _texts(lines: Sequence[bytes], name: str) -> pa.Array:
    """The texts of one key, from the lines that can be read."""
    sieve = _Sieve(pa.schema([(name, pa.string())]))
    sieve.take(lines, 0)
    return sieve.column(name)


def _agreeing(lines: Sequence[bytes]) -> list[bytes]:
    """The lines that are objects in which every value has the usual kind of its key."""
    objects = [(line, found) for line in lines if isinstance(found := _object(line), dict)]
    counts: dict[str, dict[str, int]] = {}
    for _, found in objects:
        for key, value in found.items():
            if value is not None:
                kinds = counts.setdefault(key, {})
                kinds[_kind(value)] = kinds.get(_kind(value), 0) + 1
    usual = {key: max(kinds, key=lambda k: kinds[k]) for key, kinds in counts.items()}
    return [
        line
        for line, found in objects
        if all(v is None or _kind(v) == usual[k] for k, v in found.items())
    ]


def _kind(value: object) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "number"
    return type(value).__name__


def _halves_schema(lines: Sequence[bytes]) -> pa.Schema | None:
    """The schema that Arrow infers; from halves where it cannot from all: the first half wins."""
    if not lines:
        return None
    try:
        return _read(b"\n".join(lines), None).schema
    except pa.ArrowInvalid:
        if len(lines) == 1:
            return None
    half = len(lines) // 2
    found = [s for part in (lines[:half], lines[half:]) if (s := _halves_schema(part))]
    try:
        return pa.unify_schemas(found, promote_options="permissive") if found else None
    except pa.ArrowTypeError:
        return found[0]


def _settled(type_: pa.DataType, top: bool) -> pa.DataType:
    """An inferred type, normalised; times inside other values stay texts."""
    if pa.types.is_struct(type_):
        return pa.struct([(f.name, _settled(f.type, False)) for f in type_])
    if pa.types.is_list(type_):
        return pa.list_(_settled(type_.value_type, False))
    if pa.types.is_timestamp(type_) or (pa.types.is_null(type_) and not top):
        return pa.string()
    return type_


def _holds_times(text: pa.Array | pa.ChunkedArray, is_time: bool, dialect: Dialect) -> bool:
    """Whether texts are times: all of them, or most of them for the time column."""

    def parse_time(some: pa.Array) -> pa.Array:
        return dialect.convert(some, TIME)

    if is_time:
        return mostly_times(text, parse_time)
    some = text.drop_null().cast(pa.string())
    some = some.combine_chunks() if isinstance(some, pa.ChunkedArray) else some
    if not len(some) or parse_time(some[:100]).null_count:
        return False
    return not parse_time(some).null_count
