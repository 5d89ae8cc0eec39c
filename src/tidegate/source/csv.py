"""CSV, between the bytes of a block and a table; the header gives the names.

Rules for cells: empty (quoted or not) is NULL; numbers and dates may have blanks around them;
times are ISO 8601, in UTC unless they say otherwise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from tidegate.errors import SourceError
from tidegate.schema import TIME, type_name
from tidegate.source.block import Records, split_csv
from tidegate.source.event_time import cast_possible, mostly_times, parse_time
from tidegate.source.protocol import Reject
from tidegate.source.text import Head, Parsed, with_times

_TRUE = ("1", "true", "True", "TRUE")
_FALSE = ("0", "false", "False", "FALSE")
_QUOTED = re.compile(r'"((?:[^"]++|"")*+)"([^,]*+)')
_PLAIN = re.compile(r"[^,]*+")
_INFERRED = (pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.null())


@dataclass(frozen=True)
class CsvFormat:
    """CSV with commas, double quotes and the names of one file's header, in its order."""

    names: tuple[str, ...]

    def split(self, data: bytes, final: bool) -> Records:
        return split_csv(data, final)

    def parse(self, data: bytes, rows: int, schema: pa.Schema) -> Parsed:
        if not _has_lone_return(data):
            try:
                table = self._read(data, schema)
            except pa.ArrowInvalid:
                table = None
            if table is not None and table.num_rows == rows:
                timed = with_times(table, schema)
                if timed is not None:
                    return Parsed(timed, None, ())
        return self._parse_each(data, schema)

    def infer(self, data: bytes, time: str | None) -> pa.Schema:
        """Types of a sample of whole records; null where a column has no value in it.

        A single value of another kind makes a column a string, except for the time column, which
        stays one when most of its values are times.
        """
        sample, table = self._sample(data)
        fields = []
        for name in self.names:
            type_ = table.schema.field(name).type
            if pa.types.is_timestamp(type_):
                type_ = TIME
            elif type_ not in _INFERRED:
                type_ = pa.string()
            if name == time and type_ in (pa.string(), pa.null()):
                only_time = pa.schema([(name, pa.binary())])
                text = self._read(sample, only_time).column(0) if sample else pa.array([])
                type_ = TIME if mostly_times(text) else type_
            fields.append((name, type_))
        return pa.schema(fields)

    def _sample(self, data: bytes) -> tuple[bytes, pa.Table]:
        """The well-formed part of a sample and its values in the types Arrow finds."""
        records = split_csv(data, True)
        if len(records) and not _has_lone_return(data):
            try:
                table = self._read(data, None)
            except pa.ArrowInvalid:
                table = None
            if table is not None and table.num_rows == len(records):
                return data, table
        data = self._well_formed(data, records)
        if not data:
            return data, pa.schema([(n, pa.null()) for n in self.names]).empty_table()
        return data, self._read(data, None)

    def _read(self, data: bytes, schema: pa.Schema | None) -> pa.Table:
        types = {f.name: pa.string() if f.type == TIME else f.type for f in schema or ()}
        return pacsv.read_csv(
            pa.BufferReader(data),
            read_options=pacsv.ReadOptions(
                use_threads=False, block_size=len(data) + 1, column_names=self.names
            ),
            parse_options=pacsv.ParseOptions(newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=[""],
                true_values=_TRUE,
                false_values=_FALSE,
                strings_can_be_null=True,
            ),
        )

    def _well_formed(self, data: bytes, records: Records) -> bytes:
        """The records with as many fields as the header has, one after the other."""
        kept = []
        for start, stop in zip(records.starts, records.stops):
            record = data[start:stop]
            fields = fields_of(record.decode("utf-8", "replace"))
            if isinstance(fields, list) and len(fields) == len(self.names):
                kept.append(record.replace(b"\r", b" "))
        return b"\n".join(kept)

    def _parse_each(self, data: bytes, schema: pa.Schema) -> Parsed:
        """The slow way, for blocks in which something is wrong: record by record."""
        records = split_csv(data, True)
        reasons: dict[int, str] = {}
        places: list[int] = []
        lines: list[list[str]] = []
        for place, (start, stop) in enumerate(zip(records.starts, records.stops)):
            found = self._fields(data[start:stop])
            if isinstance(found, str):
                reasons[place] = found
            else:
                places.append(place)
                lines.append(found)
        columns = []
        for field in schema:
            at = self.names.index(field.name)
            text, broken = _texts([line[at] for line in lines])
            values = convert(text, field.type)
            for i in broken:
                reasons.setdefault(places[i], f"{field.name}: {text[i].as_py()!r} is not UTF-8")
            misread = text.is_valid().to_numpy(False) & values.is_null().to_numpy(False)
            for i in np.flatnonzero(misread):
                why = f"{field.name}: {text[i].as_py()!r} is not a {type_name(field.type)}"
                reasons.setdefault(places[i], why)
            columns.append(values)
        readable = np.array([p not in reasons for p in places], np.bool_)
        table = pa.table(columns, schema=schema).filter(pa.array(readable))
        rejects = tuple(
            Reject(p, why, data[records.starts[p] : records.stops[p]].decode("utf-8", "replace"))
            for p, why in sorted(reasons.items())
        )
        return Parsed(table, np.array(places, np.int64)[readable], rejects)

    def _fields(self, record: bytes) -> list[str] | str:
        """The cells of a record, or why it has none; bytes that are not UTF-8 are escaped."""
        fields = fields_of(record.decode("utf-8", "surrogateescape"))
        if isinstance(fields, list) and len(fields) != len(self.names):
            return f"{len(self.names)} fields must be in a line, got {len(fields)}"
        return fields


def read_head(data: bytes, whole: bool, final: bool, time: str | None, where: str) -> Head | None:
    """What the first bytes of a file say; None where they hold too little to say it."""
    records = split_csv(data, final)
    if not len(records) or (len(records) == 1 and not whole):
        return None
    start, stop = int(records.starts[0]), int(records.stops[0])
    format_ = CsvFormat(_names(data[start:stop], where))
    line_feed = data.find(b"\n", stop)
    origin = line_feed + 1 if line_feed >= 0 else len(data)
    return Head(format_, origin, format_.infer(data[origin : records.used], time))


def _names(header: bytes, where: str) -> tuple[str, ...]:
    fields: list[str] | str
    try:
        fields = fields_of(header.decode("utf-8-sig"))
    except UnicodeDecodeError:
        fields = "bytes that are not UTF-8"
    if isinstance(fields, str):
        raise SourceError(
            where,
            "the first line must be the header with the columns' names, as UTF-8 text",
            fields,
            "Write the file as comma-separated UTF-8 with a header.",
        )
    names = [name or f"_c{i}" for i, name in enumerate(fields)]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise SourceError(
            where,
            "column names must be distinct",
            f"{', '.join(twice)} more than once",
            "Rename the columns in the header.",
        )
    return tuple(names)


def fields_of(record: str) -> list[str] | str:
    """The cells of one record, row at a time; a text saying why where a quote is not closed."""
    fields, at = [], 0
    while True:
        if record.startswith('"', at):
            quoted = _QUOTED.match(record, at)
            if quoted is None:
                return "a quote is not closed"
            fields.append(quoted[1].replace('""', '"') + quoted[2])
            at = quoted.end()
        else:
            plain = _PLAIN.match(record, at)
            assert plain is not None, "the pattern matches the empty text"
            fields.append(plain[0])
            at = plain.end()
        if at >= len(record):
            return fields
        at += 1


def convert(text: pa.Array, type_: pa.DataType) -> pa.Array:
    """Cells as values of a type, NULL where a cell is none; takes all that Arrow's reader takes."""
    if type_ == pa.string():
        return text
    if type_ == TIME:
        return parse_time(text)
    trimmed = pc.utf8_trim(text, " \t")
    if type_ == pa.bool_():
        true = pc.is_in(trimmed, pa.array(_TRUE))
        known = pc.or_(true, pc.is_in(trimmed, pa.array(_FALSE)))
        return pc.if_else(known, true, pa.scalar(None, pa.bool_()))
    return cast_possible(trimmed, type_)


def _texts(cells: list[str]) -> tuple[pa.Array, list[int]]:
    """Cells as an array, empty ones as NULL, and the places of those that are not UTF-8."""
    broken = [i for i, cell in enumerate(cells) if not _is_text(cell)]
    for i in broken:
        cells[i] = cells[i].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return pa.array([cell or None for cell in cells], pa.string()), broken


def _is_text(cell: str) -> bool:
    return cell.isascii() or not any("\udc80" <= c <= "\udcff" for c in cell)


def _has_lone_return(data: bytes) -> bool:
    return b"\r" in data and data.count(b"\r") != data.count(b"\r\n")
