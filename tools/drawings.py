"""Draws the ideas that docs/ideas/ explains: docs/drawings/*.svg, readable in light and dark.

.venv/bin/python -m tools.drawings            # draw
.venv/bin/python -m tools.drawings --check    # fail where a drawing is not up to date
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from tools.generated import main

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "drawings"
STYLE = """
text { font: 14px system-ui, 'Segoe UI', sans-serif; fill: #1b2733 }
.small { font-size: 12px } .soft { fill: #52606d } .strong { font-weight: 600 }
.mid { text-anchor: middle } .end { text-anchor: end }
.card { fill: #fff; stroke: #c8d1da }
.line { stroke: #52606d; fill: none } .dash { stroke-dasharray: 5 4 }
.a { fill: #1c6dd0 } .b { fill: #b4530a } .c { fill: #2b7a3e }
.wait { fill: #fff; stroke-width: 2 } .wa { stroke: #1c6dd0 } .wb { stroke: #b4530a }
.wc { stroke: #2b7a3e } .mark { stroke: #b3261e; stroke-width: 2 } .red { fill: #b3261e }
.pale { fill: #dce8f7; stroke: #1c6dd0 } .warm { fill: #fbe6d4; stroke: #b4530a }
.moss { fill: #dcefe0; stroke: #2b7a3e } .on { fill: #fff; font-weight: 600 }
@media (prefers-color-scheme: dark) {
text { fill: #e6ebf0 } .soft { fill: #a9b4bf } .card { fill: #1d252d; stroke: #46525e }
.line { stroke: #a9b4bf } .wait { fill: #12181e }
.a { fill: #6aa8f5 } .b { fill: #f0a15c } .c { fill: #6cc083 }
.wa { stroke: #6aa8f5 } .wb { stroke: #f0a15c } .wc { stroke: #6cc083 }
.mark { stroke: #ff8a80 } .red { fill: #ff8a80 }
.pale { fill: #1b3350; stroke: #6aa8f5 } .warm { fill: #45290f; stroke: #f0a15c }
.moss { fill: #17361f; stroke: #6cc083 } .on { fill: #12181e }
}
"""
COLOURS, PALES = "abc", ("pale", "warm", "moss")


class Drawing:
    """An SVG under construction, 720 wide; coordinates count from the top left."""

    def __init__(self, height: int, told: str) -> None:
        self._height, self._told = height, told
        self._parts: list[str] = []

    def text(self, x: float, y: float, said: str, kind: str = "") -> None:
        self._parts.append(f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(said)}</text>')

    def box(self, x: float, y: float, w: float, h: float, kind: str, radius: int = 4) -> None:
        place = f'x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{radius}"'
        self._parts.append(f'<rect {place} class="{kind}"/>')

    def dot(self, x: float, y: float, kind: str, radius: float = 6) -> None:
        self._parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="{kind}"/>')

    def line(self, x: float, y: float, x2: float, y2: float, kind: str = "line") -> None:
        self._parts.append(f'<path d="M{x:g} {y:g}L{x2:g} {y2:g}" class="{kind}"/>')

    def arrow(self, x: float, y: float, x2: float, y2: float) -> None:
        """A line with a head at its second end."""
        path = f'd="M{x:g} {y:g}L{x2:g} {y2:g}" class="line" marker-end="url(#head)"'
        self._parts.append(f"<path {path}/>")

    def curve(self, places: Sequence[tuple[float, float]], kind: str) -> None:
        """A line through places, in the colour of a kind such as `wa`."""
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        self._parts.append(f'<path d="M{path}" fill="none" stroke-width="2" class="{kind}"/>')

    def labelled(self, x: float, y: float, w: float, h: float, kind: str, *said: str) -> None:
        """A box with lines of text in its middle."""
        self.box(x, y, w, h, kind)
        for n, one in enumerate(said):
            top = y + h / 2 + 5 + 18 * (n - (len(said) - 1) / 2)
            self.text(x + w / 2, top, one, "mid strong" if n == 0 else "mid small")

    def svg(self) -> str:
        head = (
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
            'markerHeight="8" orient="auto"><path d="M1 1L7 4L1 7" class="line"/></marker></defs>'
        )
        size = f'viewBox="0 0 720 {self._height}" width="720" height="{self._height}"'
        open_ = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
        parts = [open_, f"<title>{escape(self._told)}</title>", f"<style>{STYLE}</style>", head]
        return "\n".join([*parts, *self._parts, "</svg>"]) + "\n"


def gate() -> Drawing:
    """Three sources, of which the slowest holds the watermark."""
    told = "Three sources. The watermark F is the smallest of their newest times."
    drawing = Drawing(292, told)
    times = ((0.6, 2.1, 3.4, 5.9), (1.1, 2.6, 4.2), (0.3, 1.6, 3.0, 4.9, 5.5))
    left, unit = 120, 88
    frontier = min(max(one) for one in times)
    at = left + unit * frontier
    drawing.box(left - 8, 24, at - left + 8, 168, "moss")
    drawing.text(left, 44, "ready", "small strong")
    drawing.text(left + unit * 6.4, 44, "waits in the gate", "small soft end")
    for n, one in enumerate(times):
        y = 72 + 48 * n
        drawing.text(20, y + 5, f"source {n + 1}")
        drawing.line(left, y, left + unit * 6.4, y)
        for time in one:
            ready = time < frontier
            kind = COLOURS[n] if ready else f"wait w{COLOURS[n]}"
            drawing.dot(left + unit * time, y, kind)
    drawing.line(at, 16, at, 216, "mark")
    drawing.text(at + 8, 212, "watermark F: the slowest source", "small red strong")
    drawing.arrow(left, 232, left + unit * 6.5, 232)
    drawing.text(left + unit * 6.5, 250, "event time", "small soft end")
    drawing.text(20, 269, "into batches")
    for n, (_, source) in enumerate(
        sorted((t, s) for s, one in enumerate(times) for t in one if t < frontier)
    ):
        drawing.dot(left + 8 + 34 * n, 264, COLOURS[source])
    drawing.text(left + 330, 269, "one order, whatever came first", "small soft")
    return drawing


def panes() -> Drawing:
    """Windows of 30 minutes every 10 are three panes each."""
    drawing = Drawing(252, "Windows of 30 minutes, every 10: each is made of three panes.")
    left, wide, top = 120, 92, 50
    drawing.text(20, top + 22, "panes")
    for n in range(6):
        drawing.box(left + wide * n, top, wide - 4, 34, PALES[1] if n == 2 else PALES[0])
        drawing.text(left + wide * (n + 0.5) - 2, top + 22, f"{n * 10}-{n * 10 + 10}", "mid small")
    drawing.dot(left + wide * 2.6, 30, "b")
    drawing.text(left + wide * 2.6 + 14, 35, "a row falls into one pane", "small")
    drawing.text(20, top + 70, "windows")
    for n in range(4):
        y = top + 52 + 32 * n
        drawing.box(left + wide * n, y, wide * 3 - 4, 24, "warm" if n < 3 else "card")
        said = f"{n * 10} to {n * 10 + 30}"
        drawing.text(left + wide * (n + 1.5) - 2, y + 17, said, "mid small")
    drawing.text(
        left, top + 194, "Three windows merge the same pane: it is folded once.", "small soft"
    )
    return drawing


def epochs() -> Drawing:
    """A key has a bucket for ever; a mapping says which instance has the bucket."""
    drawing = Drawing(260, "A key has a bucket for ever. A mapping gives each bucket an instance.")
    drawing.labelled(20, 24, 120, 44, "card", "a row", "key 'a'")
    drawing.arrow(140, 46, 200, 46)
    drawing.text(170, 38, "hash", "mid small soft")
    drawing.labelled(200, 24, 120, 44, "card", "bucket 4", "for ever")
    drawing.arrow(320, 46, 400, 46)
    drawing.text(360, 38, "mapping", "mid small soft")
    drawing.labelled(400, 24, 150, 44, "card", "instance", "of this epoch")
    epochs_ = (("epoch 0", (0,) * 6 + (1,) * 6), ("epoch 1", (0,) * 4 + (2, 2) + (1,) * 4 + (2, 2)))
    for row, (name, owners) in enumerate(epochs_):
        y = 104 + 76 * row
        drawing.text(20, y + 24, name, "strong")
        for n, owner in enumerate(owners):
            x = 120 + 46 * n
            drawing.box(x, y, 40, 36, PALES[owner])
            drawing.text(x + 20, y + 23, str(n), "mid small")
            moved = row and owner != epochs_[0][1][n]
            if moved:
                drawing.arrow(x + 20, y - 36, x + 20, y - 4)
    for n, x in enumerate((120, 260, 400)):
        drawing.box(x, 232, 16, 16, PALES[n])
        drawing.text(x + 24, 245, f"instance {n}", "small")
    drawing.text(672, 245, "arrows: buckets that move", "small soft end")
    return drawing


def switch() -> Drawing:
    """A request during a batch takes effect with the next one."""
    drawing = Drawing(
        268, "A request during batch 3 takes effect with batch 4. No state is copied."
    )
    left, wide = 120, 98
    drawing.text(20, 53, "batches")
    for n in range(6):
        kind = PALES[0] if n < 3 else PALES[2]
        drawing.labelled(left + wide * n, 30, wide - 8, 38, kind, f"batch {n + 1}")
    asked = left + wide * 2.5
    drawing.line(asked, 4, asked, 30, "mark")
    drawing.text(asked - 6, 16, "scale 3 is asked", "small red strong end")
    drawing.line(left + wide * 3 - 4, 22, left + wide * 3 - 4, 208, "line dash")
    drawing.text(left + wide * 3 + 4, 86, "epoch 1", "small strong")
    drawing.text(left + wide * 3 - 12, 86, "epoch 0", "small strong end")
    for n in range(3):
        y = 102 + 36 * n
        drawing.text(20, y + 19, f"instance {n}")
        if n < 2:
            drawing.box(left, y, wide * 3 - 8, 28, PALES[0])
            drawing.text(left + wide * 1.5, y + 19, "6 buckets", "mid small")
        drawing.box(left + wide * 3, y, wide * 3 - 8, 28, PALES[2])
        drawing.text(left + wide * 4.5, y + 19, "4 buckets", "mid small")
    drawing.box(left, 220, wide * 6 - 8, 30, "card")
    drawing.text(
        left + wide * 3 - 4, 240, "segments: shared files that every instance maps", "mid small"
    )
    drawing.text(20, 240, "state")
    return drawing


def commit() -> Drawing:
    """The manifest decides whether a batch counts."""
    drawing = Drawing(238, "Stage the output, publish the manifest, publish the output.")
    steps = (("run", "the instances"), ("stage", "the output"), ("publish", "the manifest"))
    steps += (("publish", "the output"),)
    for n, said in enumerate(steps):
        x = 20 + 176 * n
        drawing.labelled(x, 30, 144, 56, PALES[2] if n == 2 else "card", *said)
        if n:
            drawing.arrow(x - 30, 58, x - 2, 58)
    line = 20 + 176 * 2 + 72
    drawing.line(line, 92, line, 216, "mark dash")
    drawing.text(line, 18, "from here the batch counts", "mid small red strong")
    drawing.box(20, 112, line - 40, 92, "warm")
    drawing.text(36, 140, "a crash here", "strong")
    drawing.text(36, 162, "The batch runs again from the", "small")
    drawing.text(36, 180, "manifest before: the same bytes.", "small")
    drawing.box(line + 20, 112, 680 - line, 92, "moss")
    drawing.text(line + 36, 140, "a crash here", "strong")
    drawing.text(line + 36, 162, "What was staged is published,", "small")
    drawing.text(line + 36, 180, "once.", "small")
    return drawing


def sampling() -> Drawing:
    """The tuples with the lowest priorities are the sample of a group."""
    drawing = Drawing(256, "The rows with the lowest priorities are kept; they give an interval.")
    priorities = (62, 18, 95, 41, 77, 9, 54, 88, 30, 70, 12, 83)
    kept = sorted(priorities)[:5]
    left, base, wide = 120, 128, 46
    drawing.text(20, 82, "priority")
    drawing.text(20, 100, "of each row", "small soft")
    limit = base - max(kept) - 6
    for n, priority in enumerate(priorities):
        kind = "pale" if priority in kept else "card"
        drawing.box(left + wide * n, base - priority, 30, priority, kind, 2)
    drawing.line(left - 8, limit, left + wide * 12, limit, "mark dash")
    drawing.text(
        left + wide * 12,
        20,
        "kept: below the line. Random, and the same in every run.",
        "small end",
    )
    drawing.line(left - 8, base, left + wide * 12, base)
    y = 196
    drawing.text(20, y + 5, "answer")
    drawing.line(left, y, left + wide * 12 - 16, y)
    drawing.box(left + 150, y - 12, 220, 24, "pale")
    drawing.dot(left + 260, y, "a")
    drawing.line(left + 290, y - 20, left + 290, y + 20, "mark")
    drawing.text(left + 150, y + 32, "low", "mid small")
    drawing.text(left + 370, y + 32, "high", "mid small")
    drawing.text(left + 260, y + 32, "estimate", "mid small")
    drawing.text(left + 298, y - 20, "exact", "small red strong")
    drawing.text(left + 390, y - 20, "inside in 95 of 100 windows", "small soft")
    return drawing


DRAWINGS: dict[str, Callable[[], Drawing]] = {
    made.__name__: made for made in (gate, panes, epochs, switch, commit, sampling)
}


def made() -> dict[Path, str]:
    return {FOLDER / f"{name}.svg": draw().svg() for name, draw in DRAWINGS.items()}


if __name__ == "__main__":
    main(made, "reference")
