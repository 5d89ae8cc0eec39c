"""The kinds of pictures of the gallery: bars, lines over time, stretches of time, intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from tools.drawings import Drawing

Bars = Sequence[tuple[str, float]]
Points = Sequence[tuple[float, float]]


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.2f}"


def bars(told: str, unit: str, values: Bars) -> Drawing:
    """A row for each value, with its name and the number behind the bar."""
    drawing = Drawing(46 + 26 * len(values), told)
    drawing.text(16, 24, unit, "small soft")
    most = max(value for _, value in values)
    for n, (name, value) in enumerate(values):
        y = 36 + 26 * n
        drawing.text(170, y + 14, name, "small end")
        drawing.box(180, y, max(430 * value / most, 2), 19, "a", 3)
        drawing.text(190 + 430 * value / most, y + 14, number(value), "small")
    return drawing


LEFT, RIGHT, TOP, BOTTOM = 70, 700, 34, 214


def scale(values: Iterable[float], low: float, high: float) -> Callable[[float], float]:
    found = list(values)
    least, most = min(found), max(found)
    span = (most - least) or 1.0
    return lambda value: low + (value - least) / span * (high - low)


def chart(told: str, unit: str, series: dict[str, Points], steps: Sequence[str] = ()) -> Drawing:
    """Lines over time in seconds, each with its name; those in `steps` hold until the next."""
    drawing = Drawing(262, told)
    drawing.text(16, 22, unit, "small soft")
    points = [point for one in series.values() for point in one]
    across = scale((x for x, _ in points), LEFT, RIGHT)
    up = scale((y for _, y in points), BOTTOM, TOP)
    for value in (min(y for _, y in points), max(y for _, y in points)):
        drawing.line(LEFT, up(value), RIGHT, up(value), "line dash")
        drawing.text(LEFT - 8, up(value) + 4, number(value), "small end")
    for n, (name, one) in enumerate(series.items()):
        places = [(across(x), up(y)) for x, y in one]
        if name in steps:
            places = [p for a, b in pairwise(places) for p in (a, (b[0], a[1]))]
            places.append((across(one[-1][0]), up(one[-1][1])))
        drawing.curve(places, f"w{'abc'[n]}")
        drawing.box(LEFT + 190 * n, 238, 14, 14, "abc"[n])
        drawing.text(LEFT + 190 * n + 20, 250, name, "small")
    drawing.text(RIGHT, 250, "event time", "small soft end")
    return drawing


def spans(told: str, unit: str, lanes: dict[str, Sequence[tuple[float, float]]]) -> Drawing:
    """A lane for each name with its stretches of time; a stretch of no length is a dot."""
    drawing = Drawing(56 + 30 * len(lanes), told)
    drawing.text(16, 22, unit, "small soft")
    across = scale((t for one in lanes.values() for span in one for t in span), 150, RIGHT)
    for n, (name, one) in enumerate(lanes.items()):
        y = 50 + 30 * n
        drawing.text(140, y + 4, name, "small end")
        drawing.line(150, y, RIGHT, y, "line dash")
        for start, end in one:
            if start == end:
                drawing.dot(across(start), y, "a")
            else:
                drawing.box(across(start), y - 8, max(across(end) - across(start), 3), 16, "a", 3)
    drawing.text(RIGHT, 46 + 30 * len(lanes), "event time", "small soft end")
    return drawing


def band(told: str, unit: str, inside: Points, ends: Sequence[tuple[float, float]]) -> Drawing:
    """A value and the interval that was promised for it, side by side."""
    drawing = Drawing(262, told)
    drawing.text(16, 22, unit, "small soft")
    up = scale([*(y for _, y in inside), *(y for pair in ends for y in pair)], BOTTOM, TOP)
    across = scale((x for x, _ in inside), LEFT + 20, RIGHT - 20)
    for (x, exact), (low, high) in zip(inside, ends, strict=True):
        drawing.box(across(x) - 12, up(high), 24, max(up(low) - up(high), 1), "pale")
        drawing.line(across(x) - 12, up(exact), across(x) + 12, up(exact), "mark")
    for value in (min(low for low, _ in ends), max(high for _, high in ends)):
        drawing.text(LEFT - 8, up(value) + 4, number(value), "small end")
    drawing.box(LEFT, 238, 14, 14, "pale")
    drawing.text(LEFT + 20, 250, "what was promised", "small")
    drawing.line(LEFT + 190, 245, LEFT + 210, 245, "mark")
    drawing.text(LEFT + 218, 250, "the exact answer", "small")
    return drawing
