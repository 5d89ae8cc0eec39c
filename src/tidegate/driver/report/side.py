"""Remembers late and rejected rows over the life of a query, and writes the lines about them.

The manifest keeps it as plain data, so that it survives restarts. For each stream: the number of
late rows, the DISORDER that would have accepted them all, and the source that was latest. Of the
rejected rows: the first one. It grows with the streams of a query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tidegate.calendar.duration import duration_text
from tidegate.calendar.microsecond import UNITS_US
from tidegate.gate.cut import Cut
from tidegate.state.epoch import counted

NOTICED = 0.001
"""From this share of late rows on, the summary says which source was late, and by how much."""

ANEW = "and start from an empty checkpoint"
"""The end of advice to change a clause of a stream."""

Sides = Mapping[str, Any]


def sides_after(
    before: Sides, cut: Cut, rejected: pa.Table | None, streams: Sequence[str]
) -> dict[str, Any]:
    """The record after a batch; `streams` are the names of the streams, by number."""
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
    """The lines of a summary about late and rejected rows; `places` say where those rows went."""
    lines: list[str] = []
    for kind, told in (("late", _late(sides, counters)), ("rejected", _rejected(sides, counters))):
        if counters.get(f"rows_{kind}", 0):
            lines += told
            lines += [] if places is None else [f"  {kind} rows {places[kind]}"]
    return lines


def late_advice(sides: Sides, counters: Mapping[str, int]) -> list[str]:
    """A line for each stream with many late rows: the latest source, and the DISORDER to write."""
    if counters.get("rows_late", 0) < NOTICED * counters.get("rows_in", 0):
        return []
    lines = []
    for stream, known in sides.get("late", {}).items():
        said = f"{counted(known['rows'], 'row')} came late, the latest in {known['source']}"
        remedy = ""
        if (needed_us := known["disorder_us"]) > 0:
            clause = f"DISORDER {disorder_text(needed_us)}"
            remedy = f" Write {clause} after its TIME to take them in, {ANEW}."
        lines.append(f"stream {stream}: {said}.{remedy}")
    return lines


def _late(sides: Sides, counters: Mapping[str, int]) -> list[str]:
    rows, whole = counters.get("rows_late", 0), counters.get("rows_in", 0)
    if not whole or rows < NOTICED * whole:
        return [f"{counted(rows, 'row')} came late, less than {NOTICED:.1%} of all"]
    whom = [f"  {line}" for line in late_advice(sides, counters)]
    return [f"{counted(rows, 'row')} came late, {rows / whole:.1%} of all", *whom]


def _rejected(sides: Sides, counters: Mapping[str, int]) -> list[str]:
    count = counters.get("rows_rejected", 0)
    first = sides.get("rejected")
    said = f"{counted(count, 'row')} {'was' if count == 1 else 'were'} rejected"
    if first is None:
        return [said]
    source, reason = first["source"], first["reason"]
    own = reason.startswith(("line ", "partition "))  # it says itself where in the source
    place = f"in {source}" if own else f"row {first['seq'] + 1:,} of {source}"
    return [f"{said}; the first, {place}: {reason}"]


def disorder_text(needed_us: int) -> str:
    """A DISORDER that is enough, in a unit that a person would choose: 45 SECONDS, 3 MINUTES."""
    sizes = [UNITS_US[unit] for unit in ("day", "hour", "minute", "second")]
    size = next((s for s in sizes if needed_us >= 2 * s), UNITS_US["millisecond"])
    return duration_text(-(-needed_us // size) * size).upper()
