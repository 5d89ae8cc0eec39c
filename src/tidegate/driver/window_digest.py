"""What is said of a subquery's windows over a run, between their log and the summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.microsecond import time_text
from tidegate.operate.figures import Shown, Values
from tidegate.state.inspect import size_text


@dataclass(frozen=True)
class Spread:
    """One figure over the windows of a run."""

    mean: float
    max: float
    last: float

    def as_dict(self) -> dict[str, float]:
        return {name: _rounded(getattr(self, name)) for name in ("mean", "max", "last")}


@dataclass(frozen=True)
class WindowDigest:
    """What there is to say of the windows of a subquery: so many, their figures, the newest."""

    windows: int
    figures: Mapping[str, Spread]
    newest: tuple[tuple[int, Values], ...]
    shown: tuple[Shown, ...]

    def as_dict(self) -> dict[str, Any]:
        """The form of the summary."""
        figures = {name: spread.as_dict() for name, spread in self.figures.items()}
        return {"windows": self.windows, "figures": figures}

    def newest_as_dict(self) -> list[dict[str, Any]]:
        """The newest windows in the form of the status, oldest first."""
        return [
            {"window_end": time_text(end_us), **{n: _rounded(v) for n, v in values.items()}}
            for end_us, values in self.newest
        ]

    @property
    def line(self) -> str:
        """The means over the run and the largest figures; empty where none is for people."""
        parts = []
        for one, spread in self._shown():
            mean, most = (figure_text(v, one.unit) for v in (spread.mean, spread.max))
            parts.append(f"{one.label} {mean}" + (f" (at most {most})" if most != mean else ""))
        return ", ".join(parts)

    @property
    def newest_line(self) -> str:
        """The newest of the figures that are brief; empty where none is."""
        found = [(one, of.last) for one, of in self._shown() if one.brief]
        return ", ".join(f"{one.label} {figure_text(last, one.unit)}" for one, last in found)

    def _shown(self) -> list[tuple[Shown, Spread]]:
        return [(one, self.figures[one.name]) for one in self.shown if one.name in self.figures]


def newest_figures(digests: Mapping[str, WindowDigest]) -> str:
    """Those of the newest windows of all subqueries, in one line; empty where there are none."""
    return ", ".join(line for line in (digest.newest_line for digest in digests.values()) if line)


def figure_text(value: float, unit: str) -> str:
    """A figure with about three digits: 12% for a share, 0.42 ms, 32.8 KiB, else a number."""
    if unit == "share" and 0 < abs(value) < 0.00095:
        return f"{100 * value:.1g}%"
    if unit == "share":
        return f"{value:.{1 if abs(value) < 0.0995 and value else 0}%}"
    if unit == "ms":
        return f"{value:,.{0 if value >= 9.95 else 1 if value >= 0.995 else 2}f} ms"
    if unit == "bytes":
        return size_text(round(value))
    digits = 0 if value == int(value) or value >= 99.5 else 1 if value >= 9.95 else 2
    return f"{value:,.{digits}f}"


def _rounded(value: float) -> float:
    """With as many digits as anybody reads; whole numbers as such."""
    return int(value) if value == int(value) else float(f"{value:.6g}")
