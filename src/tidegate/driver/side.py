"""Counts late and rejected tuples by stream and reason, over all batches of a query.

A manifest keeps it as plain data, so that it holds over restarts: by stream how many rows came
late, the DISORDER that would have taken them all in, and the source that was furthest behind; and
of the rejected rows the first. It grows with the streams of a query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tidegate.duration import duration_text
from tidegate.gate.intake import Cut
from tidegate.microsecond import UNITS_US

NOTICED = 0.001
"""The share of late rows from which on a summary says who was late, and by how much."""

Sides = Mapping[str, Any]


def sides_after(
    before: Sides, cut: Cut, rejected: pa.Table | None, streams: Sequence[str]
) -> dict[str, Any]:
    """What is known after a batch; `streams` are the names of the streams by number."""
    late = {stream: dict(known) for stream, known in before.get("late", {}).items()}
    for part in cut.parts:
        if not part.slice.late_rows:
            continue
        known = late.setdefault(streams[part.stream], {"rows": 0, "disorder_us": -1, "source": ""})
        known["rows"] += part.slice.late_rows
        if part.slice.disorder_us > known["disorder_us"]:
            known["disorder_us"] = part.slice.disorder_us
            known["source"] = part.track.source.id
    first = before.get("rejected")
    if first is None and rejected is not None and rejected.num_rows:
        row = rejected.slice(0, 1).to_pylist()[0]
        first = {name: row[f"_{name}"] for name in ("stream", "source", "seq", "reason")}
    return {**({"late": late} if late else {}), **({"rejected": first} if first else {})}


def side_lines(
    sides: Sides, counters: Mapping[str, int], places: Mapping[str, str] | None
) -> list[str]:
    """What a summary says of late and rejected rows; `places` say what became of them."""
    lines: list[str] = []
    for kind, told in (("late", _late(sides, counters)), ("rejected", _rejected(sides, counters))):
        if counters.get(f"rows_{kind}", 0):
            lines += told
            lines += [] if places is None else [f"  {kind} rows {places[kind]}"]
    return lines


def _late(sides: Sides, counters: Mapping[str, int]) -> list[str]:
    rows, whole = counters.get("rows_late", 0), counters.get("rows_in", 0)
    if not whole or rows < NOTICED * whole:
        return [f"{_rows(rows)} came late, less than {NOTICED:.1%} of all"]
    lines = [f"{_rows(rows)} came late, {rows / whole:.1%} of all"]
    for stream, known in sides.get("late", {}).items():
        lines.append(f"  {stream}: {_rows(known['rows'])}, the latest in {known['source']}")
        if (needed_us := known["disorder_us"]) > 0:
            lines.append(f"    DISORDER {disorder_text(needed_us)} would have taken them in")
    return lines


def _rejected(sides: Sides, counters: Mapping[str, int]) -> list[str]:
    count = counters.get("rows_rejected", 0)
    first = sides.get("rejected")
    said = f"{_rows(count)} {'was' if count == 1 else 'were'} rejected"
    if first is None:
        return [said]
    source, reason = first["source"], first["reason"]
    own = reason.startswith("line ")  # it says itself where in the file
    place = f"in {source}" if own else f"row {first['seq'] + 1:,} of {source}"
    return [f"{said}; the first, {place}: {reason}"]


def disorder_text(needed_us: int) -> str:
    """A DISORDER that is enough, in a unit that a person would choose: 45 SECONDS, 3 MINUTES."""
    sizes = [UNITS_US[unit] for unit in ("day", "hour", "minute", "second")]
    size = next((s for s in sizes if needed_us >= 2 * s), UNITS_US["millisecond"])
    return duration_text(-(-needed_us // size) * size).upper()


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"
