"""Line charts over time, and bars, as SVG, in a few elements; matplotlib is no dependency."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

WIDTH, HEIGHT = 760, 300
LEFT, TOP, BOTTOM = 48, 86, 252
INK, PALE = "#333", "#777"
STYLES = (
    ("#e69f00", 3.5),
    ("#0072b2", 1.5),
    ("#999999", 1.2),
    ("#009e73", 1.5),
    ("#cc79a7", 1.5),
)
"""Colours that colour-blind people tell apart; the first is wide, to be seen beneath the others."""


@dataclass(frozen=True)
class Line:
    """The values of one name at times; `steps` where they hold until the next."""

    name: str
    values: Sequence[float]
    at: Sequence[float]
    steps: bool = False

    @staticmethod
    def each_second(name: str, values: Sequence[float], steps: bool = False) -> Line:
        return Line(name, values, range(len(values)), steps)


@dataclass(frozen=True)
class Chart:
    """A title, what the numbers are, lines, dashed levels, and words from a time on."""

    title: str
    unit: str
    lines: Sequence[Line]
    levels: Sequence[tuple[str, float]] = ()
    marks: Sequence[tuple[float, str]] = ()
    time: str = "seconds"

    def write(self, path: Path) -> None:
        path.write_text(self.svg(), encoding="utf-8")
        print(f"written to {path}")

    def svg(self) -> str:
        return "\n".join(self._parts()) + "\n"

    @property
    def _right(self) -> float:
        """Where the lines end: beside them stand the names of the levels."""
        return WIDTH - 18 - 7 * max((len(name) for name, _ in self.levels), default=0)

    @property
    def _length(self) -> float:
        return max(line.at[-1] for line in self.lines) or 1.0

    @property
    def _ticks(self) -> list[float]:
        highest = max(max(line.values) for line in self.lines)
        return ticks(max([highest, *(level for _, level in self.levels)]))

    def _x(self, at: float) -> float:
        return round(LEFT + at / self._length * (self._right - LEFT), 1)

    def _y(self, value: float) -> float:
        return round(BOTTOM - value / self._ticks[-1] * (BOTTOM - TOP), 1)

    def _parts(self) -> Iterator[str]:
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="12">'
        )
        yield f"<title>{escape(self.title)}</title>"
        yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
        yield text(14, 20, self.title, 'font-weight="bold" font-size="14"')
        yield from self._legend()
        yield from self._axes()
        for at, said in self.marks:
            yield f'<path d="M{self._x(at)} {TOP}V{BOTTOM}" stroke="#bbb"/>'
            yield text(self._x(at) + 4, TOP - 6, said, f'fill="{PALE}" font-size="11"')
        for number, line in reversed([*enumerate(self.lines)][2:]):
            yield self._drawn(number, line)
        for number, line in enumerate(self.lines[:2]):
            yield self._drawn(number, line)
        for name, level in self.levels:
            y = self._y(level)
            yield f'<path d="M{LEFT} {y}H{self._right}" stroke="{INK}" stroke-dasharray="5 4"/>'
            yield text(self._right + 6, y + 4, name, f'fill="{INK}"')
        yield "</svg>"

    def _legend(self) -> Iterator[str]:
        at = 14.0
        for (colour, width), line in zip(STYLES, self.lines, strict=False):
            yield f'<path d="M{at} 38h22" stroke="{colour}" stroke-width="{width}"/>'
            yield text(at + 28, 42, line.name, f'fill="{INK}"')
            at += 60 + 6.6 * len(line.name)

    def _axes(self) -> Iterator[str]:
        found = self._ticks
        for value in found:
            y = self._y(value)
            yield f'<path d="M{LEFT} {y}H{self._right}" stroke="{"#ddd" if value else INK}"/>'
            yield text(LEFT - 6, y + 4, f"{value:g}", f'text-anchor="end" fill="{INK}"')
        centred = f'text-anchor="middle" fill="{INK}"'
        for at in ticks(self._length, fewest=5):
            if at < self._length + 1.5:
                yield f'<path d="M{self._x(at)} {BOTTOM}v4" stroke="{INK}"/>'
                yield text(self._x(at), BOTTOM + 17, f"{at:g}", centred)
        yield text((LEFT + self._right) / 2, HEIGHT - 10, self.time, centred)
        yield text(14, TOP - (24 if self.marks else 12), self.unit, f'fill="{INK}"')

    def _drawn(self, number: int, line: Line) -> str:
        colour, width = STYLES[number]
        path, before = [], None
        for at, value in zip(line.at, line.values, strict=True):
            y = self._y(value)
            if before is None:
                path.append(f"M{self._x(at)} {y}")
            elif line.steps and y != before:
                path.append(f"H{self._x(at)}V{y}")
            elif not line.steps:
                path.append(f"L{self._x(at)} {y}")
            before = y
        if line.steps:
            path.append(f"H{self._x(line.at[-1])}")
        return (
            f'<path d="{"".join(path)}" fill="none" stroke="{colour}" stroke-width="{width}" '
            'stroke-linejoin="round"/>'
        )


@dataclass(frozen=True)
class Bars:
    """A title, what the numbers are, and a bar for each name."""

    title: str
    unit: str
    bars: Sequence[tuple[str, float]]

    def svg(self) -> str:
        return "\n".join(self._parts()) + "\n"

    def _parts(self) -> Iterator[str]:
        height, left = 56 + 30 * len(self.bars), 24 + 7 * max(len(name) for name, _ in self.bars)
        longest, most = WIDTH - left - 90, max(value for _, value in self.bars) or 1.0
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            'font-family="sans-serif" font-size="12">'
        )
        yield f"<title>{escape(self.title)}</title>"
        yield f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
        yield text(14, 20, self.title, 'font-weight="bold" font-size="14"')
        yield text(14, 38, self.unit, f'fill="{INK}"')
        for number, (name, value) in enumerate(self.bars):
            y, width = 50 + 30 * number, round(value / most * longest, 1)
            yield text(14, y + 15, name, f'fill="{INK}"')
            colour = STYLES[number][0]
            yield f'<rect x="{left}" y="{y}" width="{width}" height="20" fill="{colour}"/>'
            yield text(left + width + 6, y + 15, short(value), f'fill="{INK}"')
        yield f'<path d="M{left} 46V{height - 6}" stroke="{INK}"/>'
        yield "</svg>"


def short(value: float) -> str:
    """A number with three digits that count, and no power of ten."""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def ticks(highest: float, fewest: int = 4) -> list[float]:
    """Round numbers from 0 to the first that is not below the highest value."""
    size = 10.0 ** math.floor(math.log10(highest / fewest))
    step = max(size * one for one in (1, 2, 5, 10) if size * one <= highest / fewest)
    return [round(step * i, 10) for i in range(math.ceil(highest / step - 1e-9) + 1)]


def text(x: float, y: float, said: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" {more}>{escape(said)}</text>'
