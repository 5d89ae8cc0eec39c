"""How cells of text are written: separators, quotes, NULLs, dates and times."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.schema import TIME
from tidegate.source.subscription import Reading
from tidegate.source.text.encoding import UTF_8, check_marks
from tidegate.source.text.event_time import cast_possible, parse_time
from tidegate.source.text.pattern import Pattern

TRUE = ("1", "true", "True", "TRUE")
FALSE = ("0", "false", "False", "FALSE")


@dataclass(frozen=True)
class Dialect:
    """The separator, the quote, the cells that mean NULL, and the forms of dates and times.

    `quote` is empty where quotes mean nothing.
    """

    sep: str = ","
    quote: str = '"'
    nulls: tuple[str, ...] = ("",)
    codec: str = UTF_8
    dates: Pattern | None = None
    times: Pattern | None = None

    @staticmethod
    def of(reading: Reading, codec: str, where: str) -> Dialect:
        """The dialect of a stream's options; `codec` is the encoding of the file."""
        sep, quote = reading.get("sep"), reading.get("quote")
        check_marks(codec, sep + quote, where)
        nulls = tuple(dict.fromkeys(("", reading.get("nullValue"))))
        dates, times = reading.get("dateFormat"), reading.get("timestampFormat")
        return Dialect(sep, quote, nulls, codec, dates, times)

    def as_text(self, type_: pa.DataType) -> bool:
        """Whether Arrow must give this type as texts, because it would parse them otherwise."""
        return bool(type_ == TIME or (type_ == pa.date32() and self.dates is not None))

    def convert(self, text: pa.Array, type_: pa.DataType) -> pa.Array:
        """Cells as values of a type, NULL where a cell is not one. Accepts all that Arrow does."""
        if type_ == pa.string():
            return text
        if type_ == TIME:
            return parse_time(text) if self.times is None else self.times.times(text)
        if type_ == pa.date32() and self.dates is not None:
            return self.dates.dates(text)
        if pa.types.is_binary(type_):
            return text.cast(type_)
        trimmed = pc.utf8_trim(text, " \t")
        if type_ == pa.bool_():
            true = pc.is_in(trimmed, pa.array(TRUE))
            known = pc.or_(true, pc.is_in(trimmed, pa.array(FALSE)))
            return pc.if_else(known, true, pa.scalar(None, pa.bool_()))
        if pa.types.is_integer(type_):  # Arrow takes no plus
            trimmed = pc.replace_substring_regex(trimmed, r"^\+([0-9]+)$", r"\1")
        return cast_possible(trimmed, type_)


USUAL = Dialect()
"""Comma-separated UTF-8 with double quotes and times in ISO 8601."""
