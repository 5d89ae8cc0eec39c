"""Reads CSV; the header, or a declaration, gives the names.

Rules for cells: empty (quoted or not) is NULL; numbers and dates may have blanks around them; times
are ISO 8601, in UTC unless they say otherwise. In a declared column whole numbers may have a sign
and zeros in front, or be hexadecimal (0x1F gives the bits of the number, with at most as many
digits as the type has). In an inferred column such cells are codes, not numbers.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from tidegate.errors import SourceError
from tidegate.schema import TIME, a_type
from tidegate.source.format import Look
from tidegate.source.shape import check_distinct, matched
from tidegate.source.subscription import Reading
from tidegate.source.text.block import Records, lines_in, split_csv
from tidegate.source.text.cell import code_columns, codes, fields_of, has_codes, quoted_columns
from tidegate.source.text.dialect import FALSE, TRUE, USUAL, Dialect
from tidegate.source.text.encoding import UTF_8, is_utf8, to_utf8
from tidegate.source.text.event_time import mostly_times
from tidegate.source.text.format import Head, TextFormat
from tidegate.source.text.layout import RawCells, TextLayout, misread

_STRAYS = 3
_FEW = 100
_DAYS = (pa.date32(), TIME)


@dataclass(frozen=True)
class CsvLayout(TextLayout):
    """CSV with the names of one file's columns, in its order.

    `inferred` says that types come from a sample and were not declared: then codes are not numbers.
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
        """Infer types from a sample of whole records; null for a column without a value.

        A column with values of several kinds is a string, unless all but a few strays are of one
        kind: then the strays count as mistakes, and their rows are rejected. Values in quotes, and
        codes such as 00123, make a column a string too. The time column is TIME when most of its
        values are times.
        """
        data = to_utf8(data, self.dialect.codec)
        records = self.records(data, True)
        if not len(records):
            return pa.schema([(n, TIME if n == time else pa.null()) for n in self.names])
        every = pa.schema([(n, pa.binary()) for n in self.names])
        cells, _, odd = self.read_cells(data, records, every)
        quoted = quoted_columns(data, records, self.dialect, odd)
        types: list[tuple[str, pa.DataType]] = []
        for place, (name, column) in enumerate(zip(self.names, cells, strict=True)):
            text, broken = _texts(column.drop_null())
            type_ = pa.string() if broken else self._kind(text, strays=name != time)
            if name == time and type_ in (pa.string(), pa.null()):
                type_ = TIME if mostly_times(text, self._times) else type_
            elif name != time and place in quoted:
                type_ = pa.string()
            types.append((name, type_))
        return pa.schema(types)

    def _kind(self, text: pa.Array, strays: bool) -> pa.DataType:
        """The type of all values of a column, with `strays` of all but a few; else string."""
        if not len(text):
            return pa.null()
        dates, times = self.dialect.dates, self.dialect.times
        days: Sequence[pa.DataType] = _DAYS if dates is None or times is None else _DAYS[::-1]
        if dates is not None and self._fit(text, pa.date32(), dialect=USUAL):
            days = days if times is not None else _DAYS[:1]  # dates, but not as they should be
            return self._first_fit(text, days)
        found = self._first_fit(text, (pa.int64(), pa.bool_(), *days, pa.float64()))
        if (found == pa.string() or _is_number(found)) and _codes_in_numbers(text):
            return pa.string()
        if found != pa.string() or not strays:
            return found
        allowed = min(max(_STRAYS, len(text) // 100), (len(text) - 1) // 2)
        return self._first_fit(text, (pa.int64(), pa.float64(), *_DAYS[::-1]), allowed)

    def _first_fit(
        self, text: pa.Array, kinds: Sequence[pa.DataType], allowed: int = 0
    ) -> pa.DataType:
        return next((type_ for type_ in kinds if self._fit(text, type_, allowed)), pa.string())

    def _fit(
        self, text: pa.Array, type_: pa.DataType, allowed: int = 0, dialect: Dialect | None = None
    ) -> bool:
        """Whether all but `allowed` texts are of a type."""
        # A few texts first: where a column is not of the type they mostly show it, at little cost.
        if type_ == pa.bool_():
            return not pc.any(pc.invert(pc.is_in(text, pa.array(TRUE + FALSE)))).as_py()
        convert = (dialect or self.dialect).convert
        some = text[: _FEW + 2 * allowed]
        return all(convert(part, type_).null_count <= allowed for part in (some, text))

    def _times(self, text: pa.Array) -> pa.Array:
        return self.dialect.convert(text, TIME)

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
        """Whether an equal number of records proves that Arrow found the same records.

        It does not where a quote is left open in the last record: for Arrow the end of the bytes
        closes it.
        """
        quote = self.dialect.quote.encode()
        if not quote or quote not in data:
            return True
        records = self.records(data, True)
        last = data[records.starts[-1] : records.stops[-1]] if len(records) else b""
        return isinstance(self._fields(last.decode("utf-8", "replace")), list)

    def _read(
        self,
        data: bytes,
        schema: pa.Schema,
        on_miscount: Callable[[pacsv.InvalidRow], str] | None = None,
    ) -> pa.Table:
        text = self.dialect.as_text
        types = {f.name: pa.string() if text(f.type) else f.type for f in schema}
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

    def read_cells(self, data: bytes, records: Records, schema: pa.Schema) -> RawCells:
        """As `TextLayout.read_cells`; all cells are bytes."""
        wrong: dict[int, str] = {}

        def note(row: pacsv.InvalidRow) -> str:
            wrong[row.number - 1] = self._miscounted(row.actual_columns)
            return "skip"

        if self._arrow_agrees(data):
            raw = pa.schema([(n, pa.binary()) for n in schema.names])
            try:
                # Arrow cannot hand over a miscounted row that is not UTF-8.
                table = self._read(data, raw, note if is_utf8(data) else None)
            except pa.ArrowInvalid:
                table = raw.empty_table()
            if table.num_rows + len(wrong) == len(records):
                columns = [c.combine_chunks() for c in table.columns]
                return RawCells(columns, np.delete(np.arange(len(records)), list(wrong)), wrong)
        return self._cells_one_by_one(data, records, schema.names)

    def _cells_one_by_one(self, data: bytes, records: Records, names: list[str]) -> RawCells:
        """As `read_cells`, for blocks whose records Arrow would divide otherwise: open quotes."""
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
        return RawCells(columns, np.delete(np.arange(len(records)), list(wrong)), wrong)

    def _miscounted(self, fields: int) -> str:
        return f"{len(self.names)} fields must be in a line, got {fields}"


class CsvFormat(TextFormat):
    """CSV, with a header line unless the option says otherwise."""

    name, title = "csv", "CSV"
    nested = False
    needs = "a header line must be there"
    options = ("sep", "header", "nullValue", "quote", "escape", *TextFormat.options)

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


def _codes_in_numbers(text: pa.Array) -> bool:
    """Whether codes are among the texts that would be read as numbers."""
    if not has_codes(text):
        return False
    whole, number = (USUAL.convert(text, t).is_valid() for t in (pa.int64(), pa.float64()))
    return has_codes(text.filter(pc.or_(whole, number)))


def _texts(cells: pa.Array) -> tuple[pa.Array, list[int]]:
    """Bytes as texts, and the places of those that are not UTF-8."""
    try:
        return cells.cast(pa.string()), []
    except pa.ArrowInvalid:
        raw = cells.to_pylist()
    texts = [None if c is None else c.decode("utf-8", "replace") for c in raw]
    broken = [i for i, (c, t) in enumerate(zip(raw, texts)) if t is not None and t.encode() != c]
    return pa.array(texts, pa.string()), broken
