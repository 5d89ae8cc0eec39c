"""Numbers that are no numbers, between cells of CSV and the types that are inferred of them.

A code as `00123`, `+4470` or `0x1F` would lose what it says if it were read as a number, and who
writes a value in quotes says that it is a text.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.source.block import Records
from tidegate.source.cell import quoted_places
from tidegate.source.dialect import Dialect

_FEW = 10_000
_CODE = r"^[ \t]*(\+|-?0[0-9xX])"


def has_codes(cells: pa.Array) -> bool:
    """Whether one of the texts has a plus sign or zeros in front, or is hexadecimal."""
    return bool(pc.any(pc.match_substring_regex(cells, _CODE), min_count=0).as_py())


def codes(cells: pa.Array) -> pa.Array:
    """Which of the texts do; NULL for NULL."""
    return pc.match_substring_regex(cells, _CODE)


def may_have_codes(data: bytes, dialect: Dialect) -> bool:
    """Whether a block may have such cells; cheap, and never false where it has."""
    marks = _marks(dialect.sep, dialect.quote)
    if data.startswith((b"0", b"-", b" ", b"\t")) or b"+" in data:
        return True
    return any(mark.search(data) is not None for mark in marks)


@lru_cache
def _marks(sep: str, quote: str) -> tuple[re.Pattern[bytes], ...]:
    """What stands before a zero in front; each begins with a text, for which the search is fast."""
    before = [sep, "\n", "\r", " ", "\t", *quote]
    found = [re.escape(mark.encode()) + rb"0[0-9xX]" for mark in before]
    found += [re.escape(mark.encode()) + rb"-0[0-9xX]" for mark in before]
    return tuple(re.compile(expression) for expression in found)


def quoted_columns(data: bytes, records: Records, dialect: Dialect) -> set[int]:
    """The columns in which a value, not an empty one, is written in quotes.

    Found by counting marks where all quotes are at the edges of cells, and record by record in the
    first ones where they are not.
    """
    quote = dialect.quote.encode()
    if not quote or quote not in data or not len(records):
        return set()
    text = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(text == ord(quote))
    opening, closing = quotes[0::2], quotes[1::2]
    edges = np.frombuffer(f"{dialect.sep}\n\r".encode(), np.uint8)
    at_edge = np.isin(text[opening - 1], edges) | (opening == 0)
    doubled = np.zeros(len(opening), np.bool_)
    doubled[1:] = closing[: len(opening) - 1] == opening[1:] - 1
    if not (at_edge | doubled).all():
        return _quoted_in_first(data, records, dialect)
    opening = opening[at_edge & ~doubled & (opening + 1 < len(text))]
    after = np.minimum(opening + 2, len(text) - 1)
    opening = opening[(text[opening + 1] != ord(quote)) | (text[after] == ord(quote))]
    seps = np.flatnonzero(text == ord(dialect.sep))
    seps = seps[np.searchsorted(quotes, seps) % 2 == 0]
    starts = records.starts[np.searchsorted(records.starts, opening, "right") - 1]
    return set((np.searchsorted(seps, opening) - np.searchsorted(seps, starts)).tolist())


def _quoted_in_first(data: bytes, records: Records, dialect: Dialect) -> set[int]:
    found: set[int] = set()
    for start, stop in zip(records.starts[:_FEW], records.stops):
        record = data[start:stop].decode("utf-8", "replace")
        found.update(quoted_places(record, dialect.sep, dialect.quote))
    return found
