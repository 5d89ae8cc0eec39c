"""Draws a running query with rich: its status and its newest rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from tidegate.batch import MAX_US, MIN_US
from tidegate.cli.live.status import SwitchNote, ViewStatus
from tidegate.driver.metric.metric import RunMetric, Where
from tidegate.driver.metric.registry import METRICS
from tidegate.driver.metric.text import ms_text
from tidegate.driver.report.metrics import BatchReport
from tidegate.execute.runner import TaskCounts
from tidegate.gate.extent import Extent
from tidegate.model.live.expectation import Expectation
from tidegate.sink.excerpt import SHOWN_ROWS, Excerpt
from tidegate.state.epoch import counted
from tidegate.state.inspect import size_text

_TWO_COLUMNS = 76
"""The narrowest terminal for two columns of numbers."""

_LEFT_LABEL, _LABEL = 10, 20
_FRESH_S = 3.0
"""How long a change of instances is highlighted."""

_MOST_BLOCKS = 12
_MOST_SHARES = 4
_LEAST_ROWS = 3
_TOLD_START_S = 0.5
_OF_SUBQUERY = {
    "instances": "instances",
    "taken": "tuples in",
    "outputs": "rows out",
    "state_rows": "state rows",
}
"""The metrics shown per subquery, if there are several."""

_LEFT = ("extent", "rows_in", "rows_out", "seconds", "backlog", "state_rows")
_RIGHT = ("newest_us", "frontier_us", "instances", "utilisation", "start_s")
"""The order of metrics in the columns; others follow those on the right."""

Pair = tuple[str, Text]


@dataclass(frozen=True)
class AtHand:
    """The running batch: its age, its number of rows, and the progress of its tasks.

    `rows` is None while its rows are being chosen, `tasks` until tasks start.
    """

    batch: int
    seconds: float
    rows: int | None
    tasks: TaskCounts | None


@dataclass(frozen=True)
class Scene:
    """Everything that one picture shows.

    `results` has the newest rows of each output; a single output's name is None.
    """

    title: str
    state: str
    status: ViewStatus
    results: Mapping[str | None, Excerpt | None]
    windows: bool
    now: float
    at_hand: AtHand | None = None
    expected: Expectation | None = None
    figures: str = ""
    advice: Sequence[str] = ()


def picture(scene: Scene, width: int, height: int) -> RenderableType:
    """The scene in `width` columns and `height` lines, or more to fit three result rows."""
    facts = _facts(scene)
    double = width >= _TWO_COLUMNS
    lines = max(len(side) for side in facts) if double else sum(len(side) for side in facts)
    above: list[RenderableType] = [_head(scene, width), Rule(style="dim")]
    above.append(_grid(facts if double else ((*facts[0], *facts[1]),)))
    every = (*_latency(scene), _predicted(scene), _figures(scene), _held(scene), _switches(scene))
    notes = [note for note in every if note is not None]
    notes += [Text(line, style="yellow", overflow="fold") for line in scene.advice]
    table = _subqueries(scene, max(height // 4, 2))
    above += notes
    above += [Text(), table] if table is not None else []
    # Beside them: the head and its rule, an empty line, and one line less than the terminal has,
    # so that it does not scroll.
    folded = sum(len(line) // max(width, 1) for line in scene.advice)
    taken = lines + len(notes) + folded + (table.row_count + 2 if table is not None else 0) + 4
    return Group(*above, *_results(scene, width, height - taken))


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
    """Labels and values: on the left rates and totals, on the right progress."""
    status, newest, at_hand = scene.status, scene.status.newest, scene.at_hand
    found: dict[str, Pair] = {}
    for metric in METRICS:
        draw = _DRAWN.get(metric.name)
        text = _number(status, metric) if draw is None else None
        if draw is not None and newest is not None:
            text = draw(scene, newest)
        if text is not None:
            found[metric.name] = (metric.label, text)
    if at_hand is not None:
        found["seconds"] = (f"batch {at_hand.batch:,}", _at_hand(at_hand, room=newest is None))
    if newest is None:
        left = [found[name] for name in ("rows_in", "seconds") if name in found]
        return tuple(left), (("watermark (frontier)", _dim("none yet")),)
    rate = Text(f"{status.rows_per_second(scene.now):,.0f} rows/s", style="bold")
    left = [("input", rate), *(found.pop(name) for name in _LEFT if name in found)]
    if (peak := _state_peak(status, newest)) is not None:
        left.append(("peak", peak))
    right = [found.pop(name) for name in _RIGHT if name in found]
    right.insert(2, ("event-time lag", _lag(status.lag_us)))
    return tuple(left), (*right, *found.values())


def _number(status: ViewStatus, metric: RunMetric) -> Text | None:
    """A metric that is a plain number, if the view shows it."""
    value = status.value(metric) if Where.VIEW in metric.where else 0
    if not metric.is_at(Where.VIEW, value):
        return None
    text = Text(metric.number(value), metric.style)
    if metric.part_of is None:
        return text
    return text.append(f"  {value / max(status.counters[metric.part_of], 1):.2%}", style="dim")


def _grid(sides: tuple[tuple[Pair, ...], ...]) -> Table:
    """The facts in one or two columns; in two, the right one has room for a time and its label."""
    grid = Table.grid(padding=(0, 2, 0, 0), expand=len(sides) > 1)
    for place in range(len(sides)):
        narrow = len(sides) > 1 and place == 0
        grid.add_column(width=_LEFT_LABEL if narrow else _LABEL, style="dim", no_wrap=True)
        grid.add_column(ratio=1 if narrow else None, no_wrap=True, overflow="ellipsis")
    nothing: Pair = ("", Text())
    for line in range(max(len(side) for side in sides)):
        cells = [side[line] if line < len(side) else nothing for side in sides]
        grid.add_row(*(part for pair in cells for part in pair))
    return grid


def _results(scene: Scene, width: int, lines: int) -> list[RenderableType]:
    """The newest rows of every output, each with an equal share of the lines.

    Besides its rows, an output takes an empty line, a title, a header, and a note if rows are left
    out. If several outputs cannot have a row each, the first may have some and the others only a
    title.
    """
    count = len(scene.results)
    limit = min(SHOWN_ROWS, lines // count - 4)
    limits = [limit if count > 1 else max(limit, _LEAST_ROWS)] * count
    if limits[0] < 1:
        limits = [min(SHOWN_ROWS, lines - count - 3), *[0] * (count - 1)]
    shown: list[RenderableType] = []
    for (output, excerpt), rows in zip(scene.results.items(), limits, strict=True):
        shown += [Text()] if rows > 0 or not shown else []
        if excerpt is None:
            shown.append(_nothing_yet(scene, output))
            continue
        shown.append(_title(scene, output, excerpt))
        shown += [excerpt.picture(width, rows)] if rows > 0 else []
    return shown


def _title(scene: Scene, output: str | None, excerpt: Excerpt) -> Text:
    title = Text(style="bold", no_wrap=True, overflow="ellipsis")
    if output is not None:
        title.append(f"{output}  ", style="bold cyan")
        rows = counted(scene.status.output_rows[output], "row")
        title.append(f"{rows} out, ", style="default not bold")
    return title.append(excerpt.title)


def _nothing_yet(scene: Scene, output: str | None) -> Text:
    again = output is None and scene.status.counters["rows_out"] > 0  # since the checkpoint began
    what = "window is complete" if scene.windows else "row has come out"
    text = Text("" if output is None else f"{output}  ", style="bold cyan")
    return text.append(f"no {'further ' if again else ''}{what} yet", style="dim not bold default")


def _subqueries(scene: Scene, most: int) -> Table | None:
    """A table of the subqueries, if there are several."""
    found = scene.status.subqueries
    if not found:
        return None
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("subquery", no_wrap=True, overflow="ellipsis", max_width=30)
    for label in (*_OF_SUBQUERY.values(), "cpu"):
        table.add_column(label, justify="right", no_wrap=True)
    cpu_us = {name: sums["cpu_us"] + sums["map_cpu_us"] for name, sums in found.items()}
    whole = sum(cpu_us.values()) or 1
    for name, sums in list(found.items())[:most]:
        numbers = (f"{sums[count]:,}" for count in _OF_SUBQUERY)
        table.add_row(name, *numbers, f"{cpu_us[name] / whole:.0%}")
    if len(found) > most:
        table.add_row(_dim(f"and {len(found) - most:,} more"))
    return table


def _fresh(scene: Scene) -> SwitchNote | None:
    """The last change of instances, while it is highlighted."""
    switches = list(scene.status.switches)
    return switches[-1] if switches and scene.now - switches[-1].at < _FRESH_S else None


def _note(label: str, text: str = "") -> Text:
    """The beginning of a line below the facts."""
    line = Text(f"{label:<{_LEFT_LABEL}}  ", style="dim", no_wrap=True, overflow="ellipsis")
    return line.append(text, style="default not dim")


def _latency(scene: Scene) -> list[Text]:
    """Latency from arrival to commit, of the newest batch and of recent ones, for live sources."""
    newest, latency = scene.status.newest, scene.status.latency
    if newest is None or latency is None or newest.recent_latency is None:
        return []
    lines = []
    for label, found, of in (
        ("latency", latency, "newest batch"),
        ("", newest.recent_latency, "recent batches"),
    ):
        line = _note(label)
        for name, ms in found.percentiles():
            line.append(f"{name} ").append(f"{ms_text(ms):<8}", style="default not dim")
        lines.append(line.append(of))
    return lines


def _predicted(scene: Scene) -> Text | None:
    """The model's prediction for the last second: mean latency and load."""
    expected = scene.expected
    if expected is None:
        return None
    falls_behind = expected.load >= 1
    times_s = {"mean": expected.latency_s, "measured": expected.measured_s}
    line = _note("predicted")
    for name, time_s in times_s.items():
        if time_s is not None:
            line.append(f"{name} ").append(f"{ms_text(time_s * 1e3):<8}", style="default not dim")
    load = f"{expected.load:.0%}"
    line.append("load ").append(f"{load:<8}", style="yellow" if falls_behind else "default")
    return line.append("falls behind" if falls_behind else "")


def _figures(scene: Scene) -> Text | None:
    """The figures of the newest window."""
    return _note("window", scene.figures) if scene.figures else None


def _backlog(scene: Scene, newest: BatchReport) -> Text | None:
    """Input that had arrived but was not taken when the newest batch ended."""
    if newest.backlog is None:
        return None
    rows, size, files = (newest.backlog.total[unit] for unit in ("rows", "bytes", "files"))
    parts = [counted(files, "file")] if files else []
    parts += [size_text(size)] if size else []
    parts += [counted(rows, "row")] if rows else []
    return Text(", ".join(parts) or "none")


def _held(scene: Scene) -> Text | None:
    """The source that holds back the watermark, if others are ahead of it."""
    held = scene.status.held
    if held is None:
        return None
    line = Text("watermark waits for ", style="dim", no_wrap=True, overflow="ellipsis")
    who = held.stream if not held.source else f"{held.stream} ({held.source})"
    line.append(who, style="default not dim")
    if held.newest_us == MIN_US:
        return line.append(", which has no row yet")
    return line.append(", which is at ").append(_time(held.newest_us).plain, "default not dim")


def _at_hand(at_hand: AtHand, room: bool = False) -> Text:
    """The progress of the running batch; with its rows if there is room."""
    past = duration_text(round(at_hand.seconds * 1e6)) if at_hand.seconds >= 1 else "0 s"
    if at_hand.rows is None:
        return Text(f"{past}, reading event times")
    tasks, rows = at_hand.tasks, f"{at_hand.rows:,} rows"
    if tasks is None:
        return Text(f"{rows} to begin with")
    done = f"{tasks.done:,} of {tasks.total:,} tasks" if tasks.total else ""
    parts = [rows, done] if room else [done or rows]
    return Text(", ".join([past, *filter(None, parts)]))


def _read(scene: Scene, newest: BatchReport) -> Text | None:
    """How much of the input was read."""
    extent: Extent | None = newest.extent
    if extent is None:
        return None
    text = Text(f"{extent.share:.0%}" if extent.share < 0.995 or extent.share == 1 else "99%")
    if extent.unit == "bytes":
        return text.append(f" of {size_text(int(extent.whole))}", style="dim")
    return text.append(f" of {extent.whole:,.0f} {extent.unit}" * bool(extent.unit), style="dim")


def _instances(scene: Scene, newest: BatchReport) -> Text:
    fresh = _fresh(scene)
    blocks = "■" * min(newest.instances, _MOST_BLOCKS)
    more = "…" if newest.instances > _MOST_BLOCKS else ""
    text = Text(f"{newest.instances} {blocks}{more}", style="bold yellow" if fresh else "cyan")
    text.append(f"  epoch {newest.epoch}", style="default not bold")
    return text.append(f"  was {fresh.before}" if fresh else "", style="yellow")


def _utilisation(scene: Scene, newest: BatchReport) -> Text | None:
    """How busy each instance was; a range if there are many instances or several subqueries."""
    shares = newest.utilisation
    if not shares:
        return None
    if len(set(newest.subqueries)) == 1 and len(shares) <= _MOST_SHARES:
        return Text(" ".join(f"{share:.0%}" for share in shares))
    return Text(f"{min(shares):.0%} to {max(shares):.0%}")


def _switches(scene: Scene) -> Text | None:
    switches = list(scene.status.switches)
    if not switches:
        return None
    said = ", ".join(
        f"{s.subquery + ' ' if s.subquery else ''}{s.before} → {s.after} at batch {s.batch:,}"
        for s in switches
    )
    return _note("switches").append(
        said, style="bold yellow not dim" if _fresh(scene) else "default not dim"
    )


def _batch_time(scene: Scene, newest: BatchReport) -> Text:
    text = Text(duration_text(round(newest.seconds * 1e6)))
    median_us = round(scene.status.median_s * 1e6)
    return text.append(f"  median {duration_text(median_us)}", style="dim")


def _start(scene: Scene, newest: BatchReport) -> Text | None:
    start_s = scene.status.start_s
    return Text(duration_text(round(start_s * 1e6))) if start_s >= _TOLD_START_S else None


def _state(scene: Scene, newest: BatchReport) -> Text | None:
    if not newest.state_rows:
        return _dim("none") if scene.windows else None
    text = Text(f"{newest.state_rows:,} rows")
    return text.append(f"  {size_text(newest.state_bytes)}", style="dim")


def _state_peak(status: ViewStatus, newest: BatchReport) -> Text | None:
    """The largest state so far, if it is larger than now."""
    rows, size = status.state_peak
    if (rows, size) == (newest.state_rows, newest.state_bytes):
        return None
    return Text(f"{rows:,} rows").append(f"  {size_text(size)}", style="dim")


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


def _dim(text: str) -> Text:
    return Text(text, style="dim")


def clock_text(seconds: float) -> str:
    """Elapsed time as on a stop watch: 0:07, 1:02:03."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def duration_text(time_us: int) -> str:
    """A duration with about three digits: 850 us, 12 ms, 4.3 s, 3 min 20 s, 2 d 4 h."""
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


_DRAWN: dict[str, Callable[[Scene, BatchReport], Text | None]] = {
    "extent": _read,
    "seconds": _batch_time,
    "backlog": _backlog,
    "state_rows": _state,
    "newest_us": lambda scene, newest: _time(newest.newest_us),
    "frontier_us": lambda scene, newest: _time(newest.frontier_us),
    "instances": _instances,
    "utilisation": _utilisation,
    "start_s": _start,
}
"""Metrics that are more than a number, and the functions that draw them."""
