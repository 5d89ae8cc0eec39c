"""The cells of single records of CSV, row at a time, between a record's text and its fields."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache
def _patterns(sep: str, quote: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    s, q = re.escape(sep), re.escape(quote)
    quoted = re.compile(f"{q}((?:[^{q}]++|{q}{q})*+){q}([^{s}]*+)" if quote else r"(?!)")
    return quoted, re.compile(f"[^{s}]*+")


def fields_of(record: str, sep: str = ",", quote: str = '"') -> list[str] | str:
    """The cells of one record, row at a time; a text saying why where a quote is not closed."""
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
