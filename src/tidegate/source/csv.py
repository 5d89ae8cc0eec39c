"""CSV, between the bytes of a block and a table; the header gives the names.

Rules for cells: empty (quoted or not) is NULL; numbers and dates may have blanks around them; whole
numbers may have a sign, or be hexadecimal (0x1F, up to the digits of their type's bits and taken as
these); times are ISO 8601, in UTC unless they say otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from tidegate.errors import SourceError
from tidegate.schema import TIME, type_name
from tidegate.source.block import Records, split_csv
from tidegate.source.event_time import cast_possible, mostly_times, parse_time
from tidegate.source.protocol import Int64s, Reject
from tidegate.source.text import Head, Parsed, with_times

_TRUE = ("1", "true", "True", "TRUE")
_FALSE = ("0", "false", "False", "FALSE")
_QUOTED = re.compile(r'"((?:[^"]++|"")*+)"([^,]*+)')
_PLAIN = re.compile(r"[^,]*+")
_STRAYS = 3
_INFERRED = (pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.null())


@dataclass(frozen=True)
class CsvFormat:
    """CSV with commas, double quotes and the names of one file's header, in its order."""

    names: tuple[str, ...]

    def split(self, data: bytes, final: bool) -> Records:
        return split_csv(data, final)

    def parse(self, data: bytes, rows: int, schema: pa.Schema) -> Parsed:
        if _arrow_agrees(data):
            try:
                table = self._read(data, schema)
            except pa.ArrowInvalid:
                table = None
            if table is not None and table.num_rows == rows:
                timed = with_times(table, schema)
                if timed is not None:
                    return Parsed(timed, None, ())
        return self._parse_with_care(data, schema)

    def infer(self, data: bytes, time: str | None) -> pa.Schema:
        """Types of a sample of whole records; null where a column has no value in it.

        Values of several kinds make a column a string, unless all but a few strays are of one kind:
        then the strays are what is wrong, and their rows are rejected. The time column is one when
        most of its values are times.
        """
        sample, table = self._sample(data)
        fields = []
        for name in self.names:
            type_ = table.schema.field(name).type
            if pa.types.is_timestamp(type_):
                type_ = TIME
            elif type_ == pa.float64() and self._is_whole(sample, name, table.column(name)):
                type_ = pa.int64()
            elif type_ not in _INFERRED:
                type_ = pa.string()
            if name == time and type_ in (pa.string(), pa.null()):
                only_time = pa.schema([(name, pa.binary())])
                text = self._read(sample, only_time).column(0) if sample else pa.array([])
                type_ = TIME if mostly_times(text) else type_
            elif type_ == pa.string():
                type_ = _but_for_strays(table.column(name))
            fields.append((name, type_))
        return pa.schema(fields)

    def _is_whole(self, sample: bytes, name: str, floats: pa.ChunkedArray) -> bool:
        """Whether numbers that Arrow takes for floats are integers but for a plus sign."""
        if b"+" not in sample or not pc.all(pc.equal(floats, pc.floor(floats))).as_py():
            return False
        cells = self._read(sample, pa.schema([(name, pa.string())])).column(0).combine_chunks()
        return bool(convert(cells, pa.int64()).null_count == cells.null_count)

    def _sample(self, data: bytes) -> tuple[bytes, pa.Table]:
        """The well-formed part of a sample and its values in the types Arrow finds."""
        records = split_csv(data, True)
        if len(records) and _arrow_agrees(data):
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

    def _read(
        self,
        data: bytes,
        schema: pa.Schema | None,
        on_miscount: Callable[[pacsv.InvalidRow], str] | None = None,
    ) -> pa.Table:
        types = {f.name: pa.string() if f.type == TIME else f.type for f in schema or ()}
        return pacsv.read_csv(
            pa.BufferReader(data),
            read_options=pacsv.ReadOptions(
                use_threads=False, block_size=len(data) + 1, column_names=self.names
            ),
            parse_options=pacsv.ParseOptions(
                newlines_in_values=True, invalid_row_handler=on_miscount
            ),
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

    def _parse_with_care(self, data: bytes, schema: pa.Schema) -> Parsed:
        """The slow way, for blocks in which something is wrong: all cells as texts first."""
        records = split_csv(data, True)
        cells, places, reasons = self._cells(data, records, schema.names)
        columns = []
        for field, found in zip(schema, cells):
            text, broken = _texts(found)
            values = convert(text, field.type)
            for i in broken:
                why = f"{field.name}: {text[i].as_py()!r} is not UTF-8"
                reasons.setdefault(int(places[i]), why)
            misread = text.is_valid().to_numpy(False) & values.is_null().to_numpy(False)
            for i in np.flatnonzero(misread).tolist():
                why = f"{field.name}: {text[i].as_py()!r} is not a {type_name(field.type)}"
                reasons.setdefault(int(places[i]), why)
            columns.append(values)
        readable = ~np.isin(places, np.array(list(reasons), np.int64))
        table = pa.table(columns, schema=schema).filter(pa.array(readable))
        rejects = tuple(
            Reject(p, why, data[records.starts[p] : records.stops[p]].decode("utf-8", "replace"))
            for p, why in sorted(reasons.items())
        )
        return Parsed(table, places[readable], rejects)

    def _cells(
        self, data: bytes, records: Records, names: list[str]
    ) -> tuple[list[pa.Array], Int64s, dict[int, str]]:
        """Cells as bytes by column, the places they stand at, and why other places have none."""
        wrong: dict[int, str] = {}

        def note(row: pacsv.InvalidRow) -> str:
            wrong[row.number - 1] = self._miscounted(row.actual_columns)
            return "skip"

        if _arrow_agrees(data):
            table = self._read(data, pa.schema([(n, pa.binary()) for n in names]), note)
            if table.num_rows + len(wrong) == len(records):
                columns = [c.combine_chunks() for c in table.columns]
                return columns, np.delete(np.arange(len(records)), list(wrong)), wrong
        return self._cells_one_by_one(data, records, names)

    def _cells_one_by_one(
        self, data: bytes, records: Records, names: list[str]
    ) -> tuple[list[pa.Array], Int64s, dict[int, str]]:
        """For blocks with records that Arrow sees otherwise: quotes left open."""
        wrong: dict[int, str] = {}
        lines = []
        for place, (start, stop) in enumerate(zip(records.starts, records.stops)):
            fields = fields_of(data[start:stop].decode("utf-8", "surrogateescape"))
            if isinstance(fields, str):
                wrong[place] = fields
            elif len(fields) != len(self.names):
                wrong[place] = self._miscounted(len(fields))
            else:
                lines.append([f.encode("utf-8", "surrogateescape") or None for f in fields])
        at = [self.names.index(n) for n in names]
        columns = [pa.array([line[i] for line in lines], pa.binary()) for i in at]
        return columns, np.delete(np.arange(len(records)), list(wrong)), wrong

    def _miscounted(self, fields: int) -> str:
        return f"{len(self.names)} fields must be in a line, got {fields}"


def read_head(data: bytes, whole: bool, final: bool, time: str | None, where: str) -> Head | None:
    """What the first bytes of a file say; None where they hold too little to say it."""
    records = split_csv(data, final)
    if not len(records) or (len(records) == 1 and not whole):
        return None
    start, stop = int(records.starts[0]), int(records.stops[0])
    format_ = CsvFormat(_names(data[start:stop], where))
    origin = int(records.starts[1]) if len(records) > 1 else records.used
    first = data[records.starts[1] : records.stops[1]] if len(records) > 1 else b""
    return Head(format_, origin, format_.infer(data[origin : records.used], time), first)


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
    other = next((c for c in ";\t|" if len(fields) == 1 and c in fields[0]), None)
    if other is not None:
        raise SourceError(
            where,
            "columns must be separated by commas",
            f"{other!r} in the header {fields[0]!r}",
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
    if pa.types.is_integer(type_):
        trimmed = pc.replace_substring_regex(trimmed, r"^\+([0-9]+)$", r"\1")  # Arrow takes no plus
    return cast_possible(trimmed, type_)


def _but_for_strays(column: pa.ChunkedArray) -> pa.DataType:
    """The type that all values but a few have, three or one in a hundred; else string."""
    if column.type != pa.string():
        return pa.string()
    text = column.combine_chunks().drop_null()
    allowed = min(max(_STRAYS, len(text) // 100), (len(text) - 1) // 2)
    for type_ in (pa.int64(), pa.float64(), TIME, pa.date32()):
        if convert(text, type_).null_count <= allowed:
            return type_
    return pa.string()


def _texts(cells: pa.Array) -> tuple[pa.Array, list[int]]:
    """Bytes as texts, and the places of those that are not UTF-8."""
    try:
        return cells.cast(pa.string()), []
    except pa.ArrowInvalid:
        raw = cells.to_pylist()
    texts = [None if c is None else c.decode("utf-8", "replace") for c in raw]
    broken = [i for i, (c, t) in enumerate(zip(raw, texts)) if t is not None and t.encode() != c]
    return pa.array(texts, pa.string()), broken


def _arrow_agrees(data: bytes) -> bool:
    """Whether Arrow, where it finds as many records as there are, finds the same ones.

    To Arrow a quote left open in the last record is closed by the end of the bytes.
    """
    if b'"' not in data:
        return True
    records = split_csv(data, True)
    last = data[records.starts[-1] : records.stops[-1]] if len(records) else b""
    return isinstance(fields_of(last.decode("utf-8", "replace")), list)
