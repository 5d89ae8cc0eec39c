"""Reads CSV; the header, or a declaration, gives the names.

Rules for cells: empty (quoted or not) is NULL; numbers and dates may have blanks around them; times
are ISO 8601, in UTC unless they say otherwise. Where a type was declared, whole numbers may have a
sign and zeros in front, or be hexadecimal (0x1F, up to the digits of their type's bits and taken as
these); where it was inferred, such cells are no numbers.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from tidegate.errors import SourceError
from tidegate.schema import TIME, a_type
from tidegate.source.format import Look
from tidegate.source.reading import Reading
from tidegate.source.shape import check_distinct, matched
from tidegate.source.text.block import Records, lines_in, split_csv
from tidegate.source.text.cell import code_columns, codes, fields_of, has_codes, quoted_columns
from tidegate.source.text.dialect import FALSE, TRUE, USUAL, Dialect
from tidegate.source.text.encoding import UTF_8, to_utf8
from tidegate.source.text.event_time import mostly_times
from tidegate.source.text.format import Head, TextFormat
from tidegate.source.text.layout import Cells, TextLayout, misread

_STRAYS = 3
_INFERRED = (pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.null())


@dataclass(frozen=True)
class CsvLayout(TextLayout):
    """CSV with the names of one file's columns, in its order.

    `inferred` says that types come from a sample and were not declared: then codes are no numbers.
    """

    names: tuple[str, ...]
    dialect: Dialect = USUAL
    inferred: bool = True

    def records(self, data: bytes, final: bool) -> Records:
        return split_csv(data, final, self.dialect.sep, self.dialect.quote)

    def read_regular(self, data: bytes, rows: int, schema: pa.Schema) -> pa.Table | None:
        if not self._arrow_agrees(data):
            return None
        try:
            table = self._read(data, schema)
        except pa.ArrowInvalid:
            return None
        regular = table.num_rows == rows and not self._codes_among_numbers(data, schema)
        return table if regular else None

    def infer(self, data: bytes, time: str | None) -> pa.Schema:
        """Types of a sample of whole records; null where a column has no value in it.

        Values of several kinds make a column a string, unless all but a few strays are of one kind:
        then the strays are what is wrong, and their rows are rejected. Values in quotes, and codes
        as 00123, make it a string too. The time column is one when most of its values are times.
        """
        sample, table = self._sample(to_utf8(data, self.dialect.codec))
        texts = self._texts_among(sample, table)
        fields = []
        for name in self.names:
            type_ = self._inferred(table.schema.field(name).type, sample, name)
            if name == time:
                unsure = type_ in (pa.string(), pa.null())
                if unsure and mostly_times(self._as_read(sample, name), self._times):
                    type_ = TIME
            elif name in texts:
                type_ = pa.string()
            elif type_ == pa.string():
                type_ = _but_for_strays(table.column(name), self.dialect)
            fields.append((name, type_))
        return pa.schema(fields)

    def _inferred(self, found: pa.DataType, sample: bytes, name: str) -> pa.DataType:
        """A type of ours for one that Arrow has found; times and dates as the dialect has them."""
        if pa.types.is_timestamp(found) and self.dialect.times is None:
            return TIME
        if found in _INFERRED and not (found == pa.date32() and self.dialect.dates is not None):
            return found
        for type_, pattern in ((TIME, self.dialect.times), (pa.date32(), self.dialect.dates)):
            if pattern is not None:
                cells = self._read(sample, pa.schema([(name, pa.string())])).column(0)
                cells = cells.combine_chunks().drop_null()
                if len(cells) and not self.dialect.convert(cells, type_).null_count:
                    return type_
        return pa.string()

    def _times(self, text: pa.Array) -> pa.Array:
        return self.dialect.convert(text, TIME)

    def _as_read(self, sample: bytes, name: str) -> pa.Array | pa.ChunkedArray:
        if not sample:
            return pa.array([])
        return self._read(sample, pa.schema([(name, pa.binary())])).column(0)

    def _texts_among(self, sample: bytes, table: pa.Table) -> set[str]:
        """The columns of a sample whose values are texts, whatever they look like."""
        records = self.records(sample, True)
        quoted = quoted_columns(sample, records, self.dialect)
        found = {name for place, name in enumerate(self.names) if place in quoted}
        suspects = code_columns(sample, self.dialect, len(self.names))
        numbers = [self.names[place] for place in sorted(suspects - quoted)]
        numbers = [name for name in numbers if _may_be_number(table.column(name))]
        if not numbers:
            return found
        cells = self._read(sample, pa.schema([(n, pa.string()) for n in numbers]))
        return found | {n for n in numbers if has_codes(_numbers_of(cells.column(n)))}

    def _codes_among_numbers(self, data: bytes, schema: pa.Schema) -> bool:
        """Whether a block has codes in columns that were inferred to be numbers."""
        numbers = [f.name for f in schema if _is_number(f.type)] if self.inferred else []
        if numbers:
            suspects = code_columns(data, self.dialect, len(self.names))
            numbers = [n for n in numbers if self.names.index(n) in suspects]
        if not numbers:
            return False
        cells = self._read(data, pa.schema([(n, pa.string()) for n in numbers]))
        return any(has_codes(column) for column in cells.columns)

    def _fields(self, record: str) -> list[str] | str:
        return fields_of(record, self.dialect.sep, self.dialect.quote)

    def _arrow_agrees(self, data: bytes) -> bool:
        """Whether Arrow, where it finds as many records as there are, finds the same ones.

        To Arrow a quote left open in the last record is closed by the end of the bytes.
        """
        quote = self.dialect.quote.encode()
        if not quote or quote not in data:
            return True
        records = self.records(data, True)
        last = data[records.starts[-1] : records.stops[-1]] if len(records) else b""
        return isinstance(self._fields(last.decode("utf-8", "replace")), list)

    def _sample(self, data: bytes) -> tuple[bytes, pa.Table]:
        """The well-formed part of a sample and its values in the types Arrow finds."""
        records = self.records(data, True)
        if len(records) and self._arrow_agrees(data):
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
        text = self.dialect.as_text
        types = {f.name: pa.string() if text(f.type) else f.type for f in schema or ()}
        table = pacsv.read_csv(
            pa.BufferReader(data),
            read_options=pacsv.ReadOptions(
                use_threads=False, block_size=len(data) + 1, column_names=self.names
            ),
            parse_options=pacsv.ParseOptions(
                delimiter=self.dialect.sep,
                quote_char=self.dialect.quote or False,
                newlines_in_values=True,
                invalid_row_handler=on_miscount,
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=self.dialect.nulls,
                true_values=TRUE,
                false_values=FALSE,
                strings_can_be_null=True,
            ),
        )
        for column in table.columns:
            if pa.types.is_decimal(column.type):
                column.validate(full=True)  # the reader lets more digits pass than the type has
        return table

    def _well_formed(self, data: bytes, records: Records) -> bytes:
        """The records with as many fields as the header has, one after the other."""
        kept = []
        for start, stop in zip(records.starts, records.stops):
            record = data[start:stop]
            fields = self._fields(record.decode("utf-8", "replace"))
            if isinstance(fields, list) and len(fields) == len(self.names):
                kept.append(record.replace(b"\r", b" "))
        return b"\n".join(kept)

    def convert(self, field: pa.Field, cells: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        text, broken = _texts(cells)
        values = self.dialect.convert(text, field.type)
        encoding = self.dialect.codec.upper()
        wrong = {i: f"{text[i].as_py()!r} is not {encoding}" for i in broken}
        odd = list(misread(text, values))
        if self.inferred and _is_number(field.type):
            odd += np.flatnonzero(codes(text).fill_null(False).to_numpy(False)).tolist()
        for i in odd:
            if i not in wrong:
                wrong[i] = self._misread(field, text[i].as_py())
        return values, wrong

    def _misread(self, field: pa.Field, cell: str) -> str:
        why = f"{cell!r} is not {a_type(field.type)}"
        if not self.inferred or field.type == TIME:
            return why
        cells = pa.array([cell])
        number = not has_codes(cells) and USUAL.convert(cells, pa.float64()).null_count == 0
        remedy = "DOUBLE to read it" if number else "STRING to keep it as text"
        return f"{why}, the type of the first rows; declare {field.name} {remedy}"

    def read_cells(self, data: bytes, records: Records, schema: pa.Schema) -> Cells:
        """All cells as bytes."""
        wrong: dict[int, str] = {}

        def note(row: pacsv.InvalidRow) -> str:
            wrong[row.number - 1] = self._miscounted(row.actual_columns)
            return "skip"

        if self._arrow_agrees(data):
            table = self._read(data, pa.schema([(n, pa.binary()) for n in schema.names]), note)
            if table.num_rows + len(wrong) == len(records):
                columns = [c.combine_chunks() for c in table.columns]
                return Cells(columns, np.delete(np.arange(len(records)), list(wrong)), wrong)
        return self._cells_one_by_one(data, records, schema.names)

    def _cells_one_by_one(self, data: bytes, records: Records, names: list[str]) -> Cells:
        """For blocks with records that Arrow sees otherwise: quotes left open."""
        wrong: dict[int, str] = {}
        lines = []
        for place, (start, stop) in enumerate(zip(records.starts, records.stops)):
            fields = self._fields(data[start:stop].decode("utf-8", "surrogateescape"))
            if isinstance(fields, str):
                wrong[place] = fields
            elif len(fields) != len(self.names):
                wrong[place] = self._miscounted(len(fields))
            else:
                nulls = self.dialect.nulls
                cells = [None if f in nulls else f for f in fields]
                lines.append([f and f.encode("utf-8", "surrogateescape") for f in cells])
        at = [self.names.index(n) for n in names]
        columns = [pa.array([line[i] for line in lines], pa.binary()) for i in at]
        return Cells(columns, np.delete(np.arange(len(records)), list(wrong)), wrong)

    def _miscounted(self, fields: int) -> str:
        return f"{len(self.names)} fields must be in a line, got {fields}"


class CsvFormat(TextFormat):
    """CSV, with a header line unless the option says otherwise."""

    name, title = "csv", "CSV"
    nested = False
    needs = "a header line must be there"
    options = (
        "sep",
        "header",
        "nullValue",
        "quote",
        "escape",
        "encoding",
        "compression",
        "dateFormat",
        "timestampFormat",
    )

    def read_head(
        self, data: bytes, dialect: Dialect, whole: bool, final: bool, look: Look
    ) -> Head | None:
        reading, where = look.reading, look.where
        records = CsvLayout((), dialect).split(data, final)
        header = reading.get("header")
        if not len(records) or (len(records) == 1 and header and not whole):
            return None
        first, rows = (1, len(records) - 1) if header else (0, len(records))
        top = data[records.starts[0] : records.stops[0]]
        names = _names(top, dialect, where) if header else _numbered(top, dialect, where, reading)
        if reading.schema is not None:
            names = matched(reading.schema.names, names, where)
        layout = CsvLayout(names, dialect, reading.schema is None)
        origin = int(records.starts[first]) if rows else records.used
        row = data[records.starts[first] : records.stops[first]] if rows else b""
        schema = reading.schema
        if schema is None:
            schema = layout.infer(data[origin : records.used], look.time)
        line = lines_in(to_utf8(data[:origin], dialect.codec), origin)
        return Head(layout, origin, schema, row, rows, line)


def _names(header: bytes, dialect: Dialect, where: str) -> tuple[str, ...]:
    fields: list[str] | str
    remedy = "Close it; where quotes mean nothing, say OPTIONS (quote '')."
    encoding = dialect.codec.upper()
    try:
        text = to_utf8(header, dialect.codec).decode(UTF_8)
        fields = fields_of(text, dialect.sep, dialect.quote)
    except UnicodeDecodeError:
        fields = f"bytes that are not {encoding}"
        wide = header.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        likely = "utf-16" if wide else "windows-1252"
        remedy = f"Say how the file is encoded, as OPTIONS (encoding '{likely}')."
    if isinstance(fields, str):
        must = f"the first line must be the header with the columns' names, as {encoding} text"
        raise SourceError(where, must, fields, remedy)
    other = next((c for c in ",;\t|" if len(fields) == 1 and c in fields[0]), None)
    if other is not None:
        raise SourceError(
            where,
            f"columns must be separated by {_spoken(dialect.sep)}",
            f"{other!r} in the header {fields[0]!r}",
            f"Say OPTIONS (delimiter {other!r}).",
        )
    names = [name or f"_c{i}" for i, name in enumerate(fields)]
    check_distinct(names, where, "Rename the columns in the header.")
    return tuple(names)


def _spoken(sep: str) -> str:
    return "commas" if sep == "," else repr(sep)


def _numbered(row: bytes, dialect: Dialect, where: str, reading: Reading) -> tuple[str, ...]:
    """Names for the columns of a file without a header: the declared ones, then c and a number."""
    text = to_utf8(row, dialect.codec).decode(UTF_8, "replace")
    fields = fields_of(text, dialect.sep, dialect.quote)
    width = len(fields) if isinstance(fields, list) else 1
    declared = reading.schema.names if reading.schema is not None else []
    if len(declared) > width:
        raise SourceError(
            where,
            "columns of a file without a header are declared in its order, and no more than it has",
            f"{len(declared)} declared columns and {width} in the first line",
            f"The first line is {text[:80]!r}.",
        )
    return (*declared, *(f"c{i + 1}" for i in range(len(declared), width)))


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _may_be_number(column: pa.ChunkedArray) -> bool:
    """Whether a column of a sample is a number, or may be one but for strays."""
    return _is_number(column.type) or bool(pa.types.is_string(column.type))


def _numbers_of(column: pa.ChunkedArray) -> pa.Array:
    """Those of the cells that would be read as numbers."""
    cells = column.combine_chunks()
    whole, number = (USUAL.convert(cells, t).is_valid() for t in (pa.int64(), pa.float64()))
    return cells.filter(pc.or_(whole, number))


def _but_for_strays(column: pa.ChunkedArray, dialect: Dialect) -> pa.DataType:
    """The type that all values but a few have, three or one in a hundred; else string."""
    if column.type != pa.string():
        return pa.string()
    text = column.combine_chunks().drop_null()
    allowed = min(max(_STRAYS, len(text) // 100), (len(text) - 1) // 2)
    for type_ in (pa.int64(), pa.float64(), TIME, pa.date32()):
        if dialect.convert(text, type_).null_count <= allowed:
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
