"""The numbers that the decoding loop uses: kinds of steps, and faults of values."""

from __future__ import annotations

(
    LONG,
    INT,
    ENUM,
    UNION,
    TEXT,
    BYTES,
    DECIMAL_BYTES,
    DOUBLE,
    FLOAT,
    BOOLEAN,
    FIXED,
    DECIMAL_FIXED,
    LOOP,
    ITEM_END,
    JUMP,
) = range(15)

(
    TOO_SHORT,
    TOO_LONG,
    BAD_INT,
    BAD_SYMBOL,
    BAD_BRANCH,
    BAD_LENGTH,
    BAD_TEXT,
    BAD_DECIMAL,
    BAD_BOOLEAN,
    BAD_COUNT,
    BEHIND,
) = range(1, 12)

REASONS = {
    TOO_SHORT: "the value ends within a field",
    TOO_LONG: "a whole number has more than 64 bits",
    BAD_INT: "an int has more than 32 bits",
    BAD_SYMBOL: "an enum has no such symbol",
    BAD_BRANCH: "a union has no such branch",
    BAD_LENGTH: "a length does not fit the bytes that are left",
    BAD_TEXT: "a string is not UTF-8",
    BAD_DECIMAL: "a decimal has more than 128 bits",
    BAD_BOOLEAN: "a boolean is neither 0 nor 1",
    BAD_COUNT: "an array or a map has more items than the value has bytes",
    BEHIND: "bytes are left behind the record",
}

MOST_LOOPS = 48
"""Levels of arrays and maps; a schema has fewer (`schema.DEEPEST`)."""

SPARE_ITEMS = 1 << 16
"""How many items of arrays a value may have beyond its bytes: items of null take none."""
