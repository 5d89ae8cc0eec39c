"""Takes CSV records apart one at a time, and searches cells for codes and quotes.

A code such as `00123`, `+4470` or `0x1F` would lose information if it were read as a number. A
value in quotes is meant as a text. So neither is taken for a number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.source.text.block import Records
from tidegate.source.text.dialect import Dialect

_FEW = 10_000
_LF, _MINUS, _ZERO = b"\n-0"
_DIGITS, _BEFORE = np.zeros(256, np.bool_), np.zeros(256, np.bool_)
_DIGITS[list(b"0123456789xX")] = True
_BEFORE[list(b"+ \t")] = True
_CODE = r"^[ \t]*(\+|-?0[0-9xX])"


@lru_cache
def _patterns(sep: str, quote: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    s, q = re.escape(sep), re.escape(quote)
    quoted = re.compile(f"{q}((?:[^{q}]++|{q}{q})*+){q}([^{s}]*+)" if quote else r"(?!)")
    return quoted, re.compile(f"[^{s}]*+")


def fields_of(record: str, sep: str = ",", quote: str = '"') -> list[str] | str:
    """The cells of one record; a text that says why where a quote is not closed."""
    in_quotes, outside = _patterns(sep, quote)
    fields, at = [], 0
    while True:
        if quote and record.startswith(quote, at):
            quoted = in_quotes.match(record, at)
            if quoted is None:
                return "a quote is not closed"
            fields.append(quoted[1].replace(2 * quote, quote) + quoted[2])
            at = quoted.end()
        else:
            plain = outside.match(record, at)
            assert plain is not None, "the pattern matches the empty text"
            fields.append(plain[0])
            at = plain.end()
        if at >= len(record):
            return fields
        at += 1


def quoted_places(record: str, sep: str, quote: str) -> list[int]:
    """Which cells of a record are in quotes and not empty; none where a quote is not closed."""
    in_quotes, outside = _patterns(sep, quote)
    found, place, at = [], 0, 0
    while True:
        quoted = in_quotes.match(record, at) if record.startswith(quote, at) else None
        if quoted is not None and quoted[1]:
            found.append(place)
        cell = quoted or outside.match(record, at)
        assert cell is not None, "the pattern matches the empty text"
        if cell.end() >= len(record):
            return found
        place, at = place + 1, cell.end() + 1


def has_codes(cells: pa.Array) -> bool:
    """Whether one of the texts has a plus sign or zeros in front, or is hexadecimal."""
    return bool(pc.any(pc.match_substring_regex(cells, _CODE), min_count=0).as_py())


def codes(cells: pa.Array) -> pa.Array:
    """Whether each of the texts does; NULL for NULL."""
    return pc.match_substring_regex(cells, _CODE)


def code_columns(data: bytes, dialect: Dialect, width: int) -> set[int]:
    """The columns of a block that may have codes: all that have some, perhaps more.

    Looks at the first two bytes of each cell: a plus sign or a blank, a zero before a digit, a
    minus sign before a zero. Separators are counted to tell the column where they stand only
    between cells; elsewhere all columns are suspects.
    """
    text = np.frombuffer(b"\n" + data, np.uint8)
    edge = (text == ord(dialect.sep)) | (text == _LF)
    inside = [mark for mark in ("\r", dialect.quote) if mark and mark.encode() in data]
    for mark in inside:
        edge |= text == ord(mark)
    cells = np.flatnonzero(edge[:-2] & (text[1:-1] <= _ZERO)) + 1
    first, second = text[cells], text[cells + 1]
    zero = (first == _ZERO) & _DIGITS[second]
    minus = (first == _MINUS) & (second == _ZERO)
    found = cells[zero | minus | _BEFORE[first]]
    if not len(found):
        return set()
    edges = np.flatnonzero(edge[:-1])
    even = len(edges) % width == 0 and (text[edges[::width]] == _LF).all()
    if inside or not even or np.count_nonzero(text[:-1] == _LF) != len(edges) // width:
        return set(range(width))
    return set(np.unique(np.searchsorted(edges, found - 1) % width).tolist())


def quoted_columns(
    data: bytes, records: Records, dialect: Dialect, odd: Mapping[int, str]
) -> set[int]:
    """The columns in which some value that is not empty is in quotes.

    Counts marks where all quotes are at the edges of cells. Where they are not, or where there are
    `odd` records (which do not count), it looks at the first `_FEW` records one by one.
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
    if odd or not (at_edge | doubled).all():
        return _quoted_in_first(data, records, dialect, odd)
    opening = opening[at_edge & ~doubled & (opening + 1 < len(text))]
    after = np.minimum(opening + 2, len(text) - 1)
    opening = opening[(text[opening + 1] != ord(quote)) | (text[after] == ord(quote))]
    seps = np.flatnonzero(text == ord(dialect.sep))
    seps = seps[np.searchsorted(quotes, seps) % 2 == 0]
    starts = records.starts[np.searchsorted(records.starts, opening, "right") - 1]
    return set((np.searchsorted(seps, opening) - np.searchsorted(seps, starts)).tolist())


def _quoted_in_first(
    data: bytes, records: Records, dialect: Dialect, odd: Mapping[int, str]
) -> set[int]:
    found: set[int] = set()
    for place, (start, stop) in enumerate(zip(records.starts[:_FEW], records.stops)):
        if place not in odd:
            record = data[start:stop].decode("utf-8", "replace")
            found.update(quoted_places(record, dialect.sep, dialect.quote))
    return found
