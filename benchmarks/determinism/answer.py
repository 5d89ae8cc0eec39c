"""Rows as every engine writes them down, so that two answers are compared bit by bit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def cell(value: Any) -> Any:
    """A value as JSON: a float by its bits, a time as milliseconds since 1970 in UTC."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return round(aware.timestamp() * 1_000)
    return value


def write_rows(file: Path, rows: Iterable[Sequence[Any]]) -> None:
    file.write_text("".join(json.dumps([cell(v) for v in row]) + "\n" for row in rows))


def read_rows(file: Path) -> list[str]:
    """Each row as its line of text."""
    return file.read_text().splitlines()
