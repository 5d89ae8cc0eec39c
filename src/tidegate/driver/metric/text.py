"""Writes numbers for people, each with about three digits and its unit."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.gate.backlog import UNITS
from tidegate.state.epoch import counted
from tidegate.state.inspect import size_text


def number_text(value: float, unit: str = "") -> str:
    """A number in its unit: 12% for `share`, 32.8 KiB for `bytes`, 0.004 ms, 1,204 us, 7."""
    if unit == "share" and 0 < abs(value) < 0.00095:
        return f"{100 * value:.1g}%"
    if unit == "share":
        return f"{value:.{1 if abs(value) < 0.0995 and value else 0}%}"
    if unit == "ms" and 0 < value < 0.00995:
        return f"{value:.1g} ms"
    if unit == "ms":
        return f"{value:,.{0 if value >= 9.95 else 1 if value >= 0.995 else 2}f} ms"
    if unit == "bytes":
        return size_text(round(value))
    digits = 0 if value == int(value) or value >= 99.5 else 1 if value >= 9.95 else 2
    return f"{value:,.{digits}f} {unit}".rstrip()


def ms_text(ms: float) -> str:
    """Milliseconds, or seconds where they are many: 0.85 ms, 12 ms, 4.3 s."""
    if ms < 999.5:
        return number_text(ms, "ms")
    return f"{ms / 1e3:,.{0 if ms >= 9_950 else 1}f} s"


def short_text(count: int) -> str:
    """A large count: 950, 24.3 k, 97.7 M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count}"


def backlog_text(counts: Mapping[str, int]) -> str:
    """What waits, in the units there are of it: 1,204 rows, or 3 files and 80,112 bytes."""
    some = [
        counted(counts[unit], unit.removesuffix("s")) for unit in reversed(UNITS) if counts[unit]
    ]
    return " and ".join(some) or "none"
