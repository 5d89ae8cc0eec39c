"""The picture of a running query: its status and its newest rows, as something rich can print."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from tidegate.batch import MAX_US, MIN_US
from tidegate.cli.status import Status, Switch
from tidegate.driver.metrics import BatchReport
from tidegate.sink.excerpt import SHOWN_ROWS, Excerpt

_TWO_COLUMNS = 76
"""The narrowest terminal with two numbers beside each other."""

_LABEL = 13
_FRESH_S = 3.0
"""How long a change of instances stands out."""

_MOST_BLOCKS = 12
_LEAST_ROWS = 3

Pair = tuple[str, Text]


@dataclass(frozen=True)
class Scene:
    """All that a picture shows, at one moment."""

    title: str
    state: str
    status: Status
    excerpt: Excerpt | None
    windows: bool
    now: float


def picture(scene: Scene, width: int, height: int) -> RenderableType:
    """The scene in `width` columns and, where three rows of results fit, at most `height` lines."""
    facts = _facts(scene)
    double = width >= _TWO_COLUMNS
    lines = max(len(side) for side in facts) if double else sum(len(side) for side in facts)
    switches = _switches(scene)
    above: list[RenderableType] = [_head(scene, width), Rule(style="dim")]
    above.append(_grid(facts if double else ((*facts[0], *facts[1]),)))
    above += [switches] if switches else []
    # Beside them: the head and its rule, an empty line, the title, the header, the note of what
    # is missing, and one line less than the terminal has, so that it does not scroll.
    room = height - lines - 7 - (1 if switches else 0)
    limit = min(SHOWN_ROWS, max(room, _LEAST_ROWS))
    return Group(*above, Text(), *_results(scene, width, limit))


def _head(scene: Scene, width: int) -> Table:
    newest = scene.status.newest
    said = Text(scene.state, style="bold")
    said.append(f"  {clock_text(scene.now - scene.status.begun_at)}", style="default not bold")
    if newest is not None:
        said.append(f"  batch {newest.batch:,}", style="default not bold")
    head = Table.grid(expand=True)
    head.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    head.add_column(no_wrap=True, justify="right")
    title = Text(scene.title, style="bold cyan")
    title.truncate(max(width - said.cell_len - 2, 0), overflow="ellipsis")
    head.add_row(title, said)
    return head


def _facts(scene: Scene) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Labels and values, left and right: how fast and how much, then how far."""
    status, newest = scene.status, scene.status.newest
    counters = status.counters
    if newest is None:
        return ((("rows in", _number(counters["rows_in"])),), (("frontier", _dim("none yet")),))
    rate = Text(f"{status.rows_per_second(scene.now):,.0f} rows/s", style="bold")
    left = [
        ("input", rate),
        ("rows in", _number(counters["rows_in"])),
        ("rows out", _number(counters["rows_out"])),
        ("batch time", _batch_time(newest, status.median_s)),
    ]
    if scene.windows or newest.state_rows:
        left.append(("state", _state(newest)))
    right = [
        ("newest event", _time(newest.newest_us)),
        ("frontier", _time(newest.frontier_us)),
        ("lag", _lag(status.lag_us)),
        ("instances", _instances(newest, _fresh(scene))),
    ]
    troubles = [("late", "rows_late"), ("rejected", "rows_rejected")]
    right += [(n, Text(f"{counters[c]:,}", "yellow")) for n, c in troubles if counters[c]]
    return tuple(left), tuple(right)


def _grid(sides: tuple[tuple[Pair, ...], ...]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0), expand=len(sides) > 1)
    for _ in sides:
        grid.add_column(width=_LABEL, style="dim", no_wrap=True)
        grid.add_column(ratio=1 if len(sides) > 1 else None, no_wrap=True, overflow="ellipsis")
    nothing: Pair = ("", Text())
    for line in range(max(len(side) for side in sides)):
        cells = [side[line] if line < len(side) else nothing for side in sides]
        grid.add_row(*(part for pair in cells for part in pair))
    return grid


def _results(scene: Scene, width: int, limit_rows: int) -> list[RenderableType]:
    if scene.excerpt is None:
        again = scene.status.counters["rows_out"] > 0  # since the checkpoint began
        what = "window is complete" if scene.windows else "row has come out"
        what = f"no {'further ' if again else ''}{what} yet"
        return [_dim(what)]
    title = Text(scene.excerpt.title, style="bold", no_wrap=True, overflow="ellipsis")
    return [title, scene.excerpt.picture(width, limit_rows)]


def _fresh(scene: Scene) -> Switch | None:
    """The last change of instances, while it is news."""
    switches = list(scene.status.switches)
    return switches[-1] if switches and scene.now - switches[-1].at < _FRESH_S else None


def _instances(newest: BatchReport, fresh: Switch | None) -> Text:
    blocks = "■" * min(newest.instances, _MOST_BLOCKS)
    more = "…" if newest.instances > _MOST_BLOCKS else ""
    text = Text(f"{newest.instances} {blocks}{more}", style="bold yellow" if fresh else "cyan")
    text.append(f"  epoch {newest.epoch}", style="default not bold")
    return text.append(f"  was {fresh.before}" if fresh else "", style="yellow")


def _switches(scene: Scene) -> Text | None:
    switches = list(scene.status.switches)
    if not switches:
        return None
    said = ", ".join(f"{s.before} → {s.after} at batch {s.batch:,}" for s in switches)
    line = Text(f"{'switches':<{_LABEL}}  ", style="dim", no_wrap=True, overflow="ellipsis")
    return line.append(said, style="bold yellow not dim" if _fresh(scene) else "default not dim")


def _batch_time(newest: BatchReport, median_s: float) -> Text:
    last = duration_text(round(newest.seconds * 1e6))
    text = Text(last)
    return text.append(f"  median {duration_text(round(median_s * 1e6))}", style="dim")


def _state(newest: BatchReport) -> Text:
    if not newest.state_rows:
        return _dim("none")
    text = Text(f"{newest.state_rows:,} rows")
    return text.append(f"  {bytes_text(newest.state_bytes)}", style="dim")


def _lag(lag_us: int | None) -> Text:
    if lag_us is None:
        return _dim("not known yet")
    return Text(duration_text(lag_us) if lag_us else "none")


def _time(time_us: int) -> Text:
    if time_us == MIN_US:
        return _dim("none yet")
    if time_us == MAX_US:
        return Text("end of the input")
    return Text(str(np.datetime64(time_us // 1000, "ms")).replace("T", " ").removesuffix(".000"))


def _number(count: int) -> Text:
    return Text(f"{count:,}")


def _dim(text: str) -> Text:
    return Text(text, style="dim")


def clock_text(seconds: float) -> str:
    """Time that has passed, as on a stop watch: 0:07, 1:02:03."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def duration_text(time_us: int) -> str:
    """A length of time with about three digits: 850 us, 12 ms, 4.3 s, 3 min 20 s, 2 d 4 h."""
    if time_us < 1_000:
        return f"{time_us} us"
    if time_us < 999_500:
        return f"{time_us / 1e3:.{1 if time_us < 9_950 else 0}f} ms"
    if time_us < 59_950_000:
        return f"{time_us / 1e6:.1f} s"
    seconds = round(time_us / 1e6)
    for size, unit, part, small in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min")):
        if seconds >= size:
            return f"{seconds // size:,} {unit} {seconds % size // part} {small}"
    return f"{seconds // 60} min {seconds % 60} s"


def bytes_text(count: int) -> str:
    """A size in bytes with about three digits: 512 B, 1.2 MB."""
    size, units = float(count), ["B", "kB", "MB", "GB"]
    while size >= 999.5 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:,.{1 if size < 99.95 and units[0] != 'B' else 0}f} {units[0]}"
