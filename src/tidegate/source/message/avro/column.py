"""Turns what the decoding loop read into columns of the reader's schema.

It applies Avro's rules of schema resolution to whole columns: fields are found by name or alias,
fields that the writer lacks get their default, numbers are promoted, unions are matched branch by
branch.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa

from tidegate.calendar.microsecond import DAY_US
from tidegate.connector import Int64s
from tidegate.leaf import uuid_texts
from tidegate.schema import TIME
from tidegate.source.message.avro.arrow import arrow_type, members_of, single_type
from tidegate.source.message.avro.default import default_bytes
from tidegate.source.message.avro.program import Program, Spot, Streams, program_of, run
from tidegate.source.message.avro.schema import NO_DEFAULT, AvroField, AvroType

_PROMOTED = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_UNIT_US = {"millis": (1000, 1), "micros": (1, 1), "nanos": (1, 1000)}


class MisfitError(ValueError):
    """Values that the reader's schema cannot hold; says which and why."""


def columns_of(
    program: Program, streams: Streams, reader: AvroType, names: list[str]
) -> dict[str, pa.Array]:
    """Some fields of the reader's record, for all values that were taken.

    Raises MisfitError or ArrowInvalid where a value does not fit, without saying which one.
    """
    build = _Builder(streams)
    fields = {f.name: f for f in reader.fields}
    return {n: build.field(program.root, fields[n], streams.rows) for n in names}


def matched_field(writer: AvroType, field: AvroField) -> int | None:
    """The index of the writer's field for a reader's field, by its name or an alias."""
    names = [f.name for f in writer.fields]
    return next((names.index(n) for n in (field.name, *field.aliases) if n in names), None)


@lru_cache(maxsize=4096)
def misfit(writer: AvroType, reader: AvroType, path: str = "") -> str | None:
    """Why no value of a writer's type fits a reader's type; None where some may fit."""
    if writer.kind == "union":
        whys = [misfit(part, reader, path) for part in writer.parts]
        return whys[0] if whys and all(whys) else None
    if reader.kind == "union":
        fits = _branch(writer, reader) is not None
        return None if fits else f"{path or 'the value'} is {writer.title}, not in the union"
    if not _alike(writer, reader):
        return f"{path or 'the value'} is {writer.title} and must be {reader.title}"
    if writer.kind == "record":
        for field in reader.fields:
            place = matched_field(writer, field)
            own = f"{path}.{field.name}" if path else f"field {field.name}"
            if place is None and field.default == NO_DEFAULT:
                return f"{own} is absent and has no default"
            if place is not None:
                why = misfit(writer.fields[place].type, field.type, own)
                if why is not None:
                    return why
    if writer.parts:
        return misfit(writer.parts[0], reader.parts[0], f"{path}[]")
    return None


def _alike(writer: AvroType, reader: AvroType) -> bool:
    """Whether two types match, other than unions, without looking at types inside them."""
    if writer.kind != reader.kind:
        return reader.kind in _PROMOTED.get(writer.kind, ())
    if writer.kind == "fixed":
        return writer.size == reader.size
    if reader.logical == "decimal" and writer.logical == "decimal":
        return reader.scale == writer.scale
    return True


def _named_alike(writer: AvroType, reader: AvroType) -> bool:
    last = writer.name.rpartition(".")[2]
    return last in (reader.name.rpartition(".")[2], *reader.aliases)


def _branch(writer: AvroType, union: AvroType) -> int | None:
    """The branch of a reader's union for a type: of its own kind, or one it promotes to."""
    own = [i for i, p in enumerate(union.parts) if p.kind == writer.kind]
    full = [i for i in own if union.parts[i].name == writer.name]
    named = [i for i in own if _named_alike(writer, union.parts[i])]
    for i in (*full, *named, *range(len(union.parts))):
        part = union.parts[i]
        right_name = not writer.name or i in named
        if right_name and _alike(writer, part) and misfit(writer, part) is None:
            return int(i)
    return None


class _Builder:
    """Builds columns from one run of the loop, by the writer's place and the reader's type."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams

    def field(self, record: Spot, field: AvroField, rows: int) -> pa.Array:
        place = matched_field(record.type, field)
        if place is not None:
            return self.build(record.below[place], field.type, rows)
        if field.default == NO_DEFAULT:
            raise MisfitError(f"field {field.name} is absent and has no default")
        return pa.repeat(default_value(field)[0], rows)

    def build(self, spot: Spot, reader: AvroType, rows: int) -> pa.Array:
        """The `rows` values that were read at a place, in the reader's type."""
        if spot.type.kind == "union":
            return self._union(spot, reader, rows)
        if reader.kind == "union":
            return self._into_union(spot, reader, rows)
        why = misfit(spot.type, reader)
        if why is not None:
            raise MisfitError(why)
        kind = spot.type.kind
        if kind == "record":
            return self._record(spot, reader, rows)
        if kind in ("array", "map"):
            return self._list(spot, reader)
        if kind == "null":
            return pa.nulls(rows, arrow_type(reader))
        return self._leaf(spot, reader)

    def _record(self, spot: Spot, reader: AvroType, rows: int) -> pa.Array:
        columns = [self.field(spot, f, rows) for f in reader.fields]
        return pa.StructArray.from_arrays(columns, fields=list(arrow_type(reader)))

    def _list(self, spot: Spot, reader: AvroType) -> pa.Array:
        counts = self.streams.of(spot.slot)
        offsets = np.zeros(len(counts) + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        items = self.build(spot.below[-1], reader.parts[0], int(offsets[-1]))
        type_ = arrow_type(reader)
        if spot.type.kind == "array":
            return pa.ListArray.from_arrays(pa.array(offsets), items, type=type_)
        keys = self._leaf(spot.below[0], AvroType("string"))
        return pa.MapArray.from_arrays(pa.array(offsets), keys, items, type=type_)

    def _union(self, spot: Spot, reader: AvroType, rows: int) -> pa.Array:
        """Build the values of each branch, then put all of them into the order of the rows."""
        branches = self.streams.of(spot.slot)
        counts = np.bincount(branches, minlength=len(spot.below))
        type_ = arrow_type(reader)
        chunks, at, first = [], np.full(rows, -1, np.int64), 0
        for i, below in enumerate(spot.below):
            count = int(counts[i])
            if not count or (below.type.kind == "null" and reader.kind == "union"):
                if count and _branch(below.type, reader) is None:
                    raise MisfitError("null is not in the union of the reader")
                continue
            chunks.append(self.build(below, reader, count))
            at[branches == i] = np.arange(first, first + count)
            first += count
        if len(chunks) == 1 and first == rows:
            return chunks[0]
        # `at` has for each row its place in the chunks, -1 for null, which has no values to build.
        joined = pa.concat_arrays(chunks) if chunks else pa.nulls(0, type_)
        return joined.take(pa.array(at, mask=at < 0))

    def _into_union(self, spot: Spot, reader: AvroType, rows: int) -> pa.Array:
        branch = _branch(spot.type, reader)
        type_ = arrow_type(reader)
        if branch is None:
            raise MisfitError(f"{spot.type.title} is not in the union of the reader")
        part = reader.parts[branch]
        if part.kind == "null":
            return pa.nulls(rows, type_)
        values = self.build(spot, part, rows)
        if single_type(reader) is not None:
            return values if values.type == type_ else values.cast(type_)
        members = members_of(reader)
        which = [p for p in reader.parts[:branch] if p.kind != "null"]
        columns = [
            values if i == len(which) else pa.nulls(rows, arrow_type(m))
            for i, m in enumerate(members)
        ]
        return pa.StructArray.from_arrays(columns, fields=list(type_))

    def _leaf(self, spot: Spot, reader: AvroType) -> pa.Array:
        writer, type_ = spot.type, arrow_type(reader)
        if writer.logical == "decimal" and reader.logical == "decimal":
            return self._decimals(spot, type_)
        if writer.kind == "enum":
            return self._symbols(spot, reader)
        if writer.kind in ("string", "bytes", "fixed"):
            return self._texts(spot, reader)
        numbers = self.streams.of(spot.slot)
        return _numbers(numbers, writer, reader, type_)

    def _decimals(self, spot: Spot, type_: pa.DataType) -> pa.Array:
        low, high = self.streams.of(spot.slot), self.streams.of(spot.slot + 1)
        halves = np.column_stack([low, high])
        wide = pa.decimal128(38, type_.scale)
        found = pa.Array.from_buffers(wide, len(low), [None, pa.py_buffer(halves)])
        found.validate(full=True)
        return found.cast(type_)

    def _symbols(self, spot: Spot, reader: AvroType) -> pa.Array:
        numbers, symbols = self.streams.of(spot.slot), list(spot.type.symbols)
        known = [s if s in reader.symbols else reader.default_symbol for s in symbols]
        used = np.unique(numbers)
        for i in used:
            if known[i] is None:
                raise MisfitError(f"enum {reader.name} has no symbol {symbols[i]}")
        return pa.array(known, pa.string()).take(pa.array(numbers))

    def _texts(self, spot: Spot, reader: AvroType) -> pa.Array:
        if spot.type.logical == "decimal" or reader.logical == "decimal":
            raise MisfitError(f"{spot.type.title} is not {reader.title}")
        offsets, data = self.streams.pieces(spot.slot)
        count = int(self.streams.counts[spot.slot])
        raw = pa.Array.from_buffers(pa.binary(), count, [None, offsets, data])
        if reader.kind == "fixed" and reader.logical == "uuid":
            return uuid_texts(raw.cast(pa.binary(16)))
        if arrow_type(reader) == pa.binary():
            return raw
        if spot.type.kind == "string":
            return pa.Array.from_buffers(pa.string(), count, [None, offsets, data])
        return raw.cast(pa.string())


def _numbers(numbers: Int64s, writer: AvroType, reader: AvroType, type_: pa.DataType) -> pa.Array:
    """Numbers in the reader's type; the unit of times is the writer's, if it names one."""
    if writer.kind == "double":
        return pa.array(numbers.view(np.float64))
    if writer.kind == "float":
        found = pa.array(numbers.astype(np.uint32).view(np.float32))
        return found if type_ == found.type else found.cast(type_)
    if writer.kind == "boolean":
        return pa.array(numbers.astype(np.bool_))
    if reader.kind in ("float", "double"):
        return pa.array(numbers.astype(np.float32 if reader.kind == "float" else np.float64))
    if type_ == TIME:
        return pa.array(_micros(numbers, str(writer.logical or reader.logical))).view(TIME)
    if pa.types.is_time(type_):
        logical = str(writer.logical or reader.logical)
        micros = _micros(numbers, logical)
        if len(micros) and not (micros.min() >= 0 and micros.max() < DAY_US):
            raise MisfitError(f"a {logical} is not within a day")
        return pa.array(micros).view(type_)
    if type_ == pa.date32():
        return pa.array(numbers.astype(np.int32)).view(type_)
    return pa.array(numbers.astype(np.int32) if type_ == pa.int32() else numbers)


def _micros(numbers: Int64s, logical: str) -> Int64s:
    factor, divisor = _UNIT_US.get(logical.rpartition("-")[2], (1, 1))
    limit = np.iinfo(np.int64).max // factor
    if factor > 1 and len(numbers) and not (-limit <= numbers.min() and numbers.max() <= limit):
        raise MisfitError(f"a {logical} does not fit into 64 bits of microseconds")
    return numbers * factor if divisor == 1 else numbers // divisor


@lru_cache(maxsize=1024)
def default_value(field: AvroField) -> pa.Array:
    """The default of a field, as an array of one value."""
    record = AvroType("record", "default", fields=(AvroField(field.name, field.type),))
    program = program_of(record)
    try:
        found = run(program, [default_bytes(field.type, field.default)], 0)
    except ValueError as error:
        raise MisfitError(f"field {field.name}: {error}") from error
    if found.wrong:
        raise MisfitError(f"the default of field {field.name}: {found.wrong[0]}")
    return columns_of(program, found, record, [field.name])[field.name]
