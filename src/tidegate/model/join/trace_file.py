"""Reads the rates of a trace from a CSV file, and says which line is wrong with it, and how."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tidegate.errors import SourceError, likely, near
from tidegate.model.join.trace import Trace
from tidegate.model.operation import Floats
from tidegate.storage import disk

TIME = "t"
COLUMNS = "t, r and s, or t, r1, r2, ..., s1, s2, ..."
EXAMPLE = "Write for example t,r,s as the first line."

_COLUMN = re.compile(r"t|([rs])([1-9]\d*)?")
_EVEN = 1e-3
"""Steps may differ by this part of a step: times are often rounded."""


def read_trace(path: str) -> Trace:
    """The rates of a CSV file, one record a second; SourceError says which line is wrong, and how.

    The first line names the columns: `t` in seconds, `r` and `s` in tuples a second, or one column
    for each source of a stream, `r1, r2, ...` and `s1, s2, ...`. Times are in order and evenly
    apart. Rates count from their time on until the next.
    """
    header, rows = _rows(path, _text(path))
    columns = _columns(path, header)
    values = _values(path, header, rows)
    times, r, s = (values[:, places] for places in columns)
    step_s = _step(path, times[:, 0], [line for line, _ in rows])
    return by_seconds(Trace(times[:, 0], r, s, step_s))


def by_seconds(trace: Trace) -> Trace:
    """The same tuples with one record a second: the mean rate of each second from the first on.

    A last second that the trace only begins has the rate of its beginning.
    """
    if trace.step_s == 1.0:
        return trace
    edges = np.arange(len(trace) + 1, dtype=np.float64) * trace.step_s
    length_s = edges[-1]
    seconds = max(int(np.ceil(length_s - _EVEN)), 1)
    cuts = np.minimum(np.arange(seconds + 1, dtype=np.float64), length_s)
    return Trace(
        trace.times[0] + np.arange(seconds),
        _means(trace.r, trace.step_s, edges, cuts),
        _means(trace.s, trace.step_s, edges, cuts),
    )


def _means(rates: Floats, step_s: float, edges: Floats, cuts: Floats) -> Floats:
    """Mean rates between cuts, by what had arrived at each of them."""
    arrived = np.vstack([np.zeros(rates.shape[1]), np.cumsum(rates * step_s, axis=0)])
    at_cuts = np.column_stack([np.interp(cuts, edges, column) for column in arrived.T])
    return np.asarray(np.diff(at_cuts, axis=0) / np.diff(cuts)[:, np.newaxis], np.float64)


def _text(path: str) -> str:
    requirement = "a trace must be a CSV file"
    if disk.is_folder(path):
        raise SourceError(path, requirement, "a folder", "Name a file in it.")
    try:
        return disk.read(path).decode("utf-8-sig")
    except FileNotFoundError:
        file = Path(path)
        beside = disk.current().names(str(file.parent)) if disk.is_folder(str(file.parent)) else []
        there = sorted(name for name in beside if name.endswith(".csv"))
        remedy = likely(file.name, there) or "Check the path."
        raise SourceError(path, requirement, "no such file", remedy) from None
    except UnicodeDecodeError as error:
        got = f"the byte {error.object[error.start]:#04x} at position {error.start}"
        raise SourceError(path, "a trace must be UTF-8 text", got, "Save it as UTF-8.") from None
    except (OSError, ValueError) as error:
        got = getattr(error, "strerror", None) or str(error)
        raise SourceError(path, "a trace must be readable", got, "Check the path.") from None


def _rows(path: str, text: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The names of the columns, and the other lines that are not empty, with their numbers."""
    lines = csv.reader(io.StringIO(text))
    stripped = ((lines.line_num, [cell.strip() for cell in row]) for row in lines)
    found = [(line, cells) for line, cells in stripped if any(cells)]
    if not found:
        raise SourceError(path, f"a trace must have the columns {COLUMNS}", "an empty file")
    header, rows = found[0][1], found[1:]
    if all(_number(cell) is not None for cell in header):
        raise SourceError(
            path, f"the first line must name the columns {COLUMNS}", ",".join(header), EXAMPLE
        )
    if not rows:
        raise SourceError(path, "a trace must have rates", "no line after the names of the columns")
    return header, rows


def _columns(path: str, header: Sequence[str]) -> list[list[int]]:
    """The places of the time, and of the sources of r and of s in the order of their numbers."""
    found: dict[str, dict[int, int]] = {TIME: {}, "r": {}, "s": {}}
    for place, name in enumerate(header):
        if name in header[:place]:
            raise SourceError(path, "a column can be there once", f"{name} twice")
        known = _COLUMN.fullmatch(name)
        if known is None:
            remedy = near(name, [TIME, "r", "s", "r1", "r2", "s1", "s2"])
            raise SourceError(path, "no column of a trace has this name", name or "none", remedy)
        found[known[1] or name][int(known[2] or 0)] = place
    missing = [stream for stream, places in found.items() if not places]
    if missing:
        there = f"{', '.join(header)} without {' and '.join(missing)}"
        raise SourceError(path, f"a trace must have the columns {COLUMNS}", there)
    for stream in ("r", "s"):
        numbers = sorted(found[stream])
        if numbers not in ([0], list(range(1, len(numbers) + 1))):
            raise SourceError(
                path,
                f"the sources of {stream} must be one column {stream}, or {stream}1, {stream}2 "
                "and so on",
                ", ".join(f"{stream}{number or ''}" for number in numbers),
            )
    return [[places[number] for number in sorted(places)] for places in found.values()]


def _values(path: str, header: Sequence[str], rows: Sequence[tuple[int, list[str]]]) -> Floats:
    values = np.empty((len(rows), len(header)))
    for place, (line, cells) in enumerate(rows):
        where = f"{path} line {line}"
        if len(cells) != len(header):
            raise SourceError(
                where, f"must have {len(header)} values: {', '.join(header)}", str(len(cells))
            )
        for column, cell in enumerate(cells):
            values[place, column] = _checked(where, header[column], cell)
    return values


def _checked(where: str, name: str, cell: str) -> float:
    value = _number(cell)
    if value is None:
        raise SourceError(where, f"{name} must be a number", repr(cell) if cell else "nothing")
    if not np.isfinite(value):
        raise SourceError(where, f"{name} must be a finite number", cell)
    if name != TIME and value < 0:
        raise SourceError(where, f"{name} is a rate and must not be negative", cell)
    return value


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _step(path: str, times: Floats, lines: Sequence[int]) -> float:
    """The time between two records, the same all along; a single one is for a second."""
    steps = np.diff(times)
    if not len(steps):
        return 1.0
    for place in np.flatnonzero(steps <= 0)[:1]:
        before, time = times[place], times[place + 1]
        where = f"{path} line {lines[place + 1]}"
        if before == time:
            raise SourceError(where, "a time can be there once", f"t = {time:g} again")
        raise SourceError(
            where, "times must be in order", f"{time:g} after {before:g}", "Sort the lines by t."
        )
    step = float(np.quantile(steps, 0.5, method="lower"))
    for place in np.flatnonzero(np.abs(steps - step) > _EVEN * step)[:1]:
        raise SourceError(
            f"{path} line {lines[place + 1]}",
            f"times must be evenly apart, here by {step:g} s",
            f"{times[place + 1]:g} after {times[place]:g}",
            "Write a line for every time; a rate may be 0.",
        )
    even = float((times[-1] - times[0]) / len(steps))
    return round(even) if abs(even - round(even)) <= _EVEN * even else even
