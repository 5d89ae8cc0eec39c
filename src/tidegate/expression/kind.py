"""Families of types, for rules that hold for a whole family."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

_TESTS: tuple[tuple[str, Callable[[pa.DataType], bool]], ...] = (
    ("integer", pa.types.is_integer),
    ("float", pa.types.is_floating),
    ("decimal", pa.types.is_decimal),
    ("boolean", pa.types.is_boolean),
    ("string", pa.types.is_string),
    ("timestamp", pa.types.is_timestamp),
    ("date", pa.types.is_date32),
    ("duration", pa.types.is_duration),
    ("binary", pa.types.is_binary),
)

_TARGETS = {
    "integer": "integer float decimal boolean string timestamp",
    "float": "integer float decimal boolean timestamp",
    "decimal": "integer float decimal boolean string timestamp",
    "boolean": "integer float decimal string",
    "timestamp": "timestamp date integer float decimal string",
    "date": "timestamp string",
    "string": "binary integer float decimal boolean timestamp date",
}

CONVERSIONS = frozenset(
    (source, target) for source, targets in _TARGETS.items() for target in targets.split()
)
"""The (source, target) kinds between which CAST has a kernel."""


def kind(type_: pa.DataType) -> str:
    """The family of a type; the type's own name if it has none."""
    return next((name for name, test in _TESTS if test(type_)), str(type_))


def is_numeric(type_: pa.DataType) -> bool:
    return kind(type_) in ("integer", "float", "decimal")
