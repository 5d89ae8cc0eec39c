"""Rows for gate objects, shared by their tests: a time in microseconds and a payload."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidegate.gate.gate import Gate
from tidegate.schema import TIME

SCHEMA = pa.schema([("ts", TIME), ("id", pa.int64())])


def rows(pairs: Sequence[tuple[int | None, int]]) -> pa.Table:
    """A table of (ts, id)."""
    times = pa.array([ts for ts, _ in pairs], pa.int64()).cast(TIME)
    return pa.table([times, pa.array([i for _, i in pairs], pa.int64())], schema=SCHEMA)


def table(times: np.ndarray, ids: np.ndarray) -> pa.Table:
    return pa.table([pa.array(times).cast(TIME), pa.array(ids)], schema=SCHEMA)


def ids(found: pa.Table) -> list[int]:
    return found.column("id").to_pylist()


def gate_of(
    sources: Sequence[str] = (), readers: Sequence[str] = ("r",), disorder: int = 0
) -> Gate:
    return Gate(time="ts", schema=SCHEMA, sources=sources, readers=readers, disorder=disorder)
