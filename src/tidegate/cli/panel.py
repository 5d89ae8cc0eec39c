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
from tidegate.driver.expected import Expected
from tidegate.driver.metrics import BatchReport, ms_text
from tidegate.execute.executor import Tasks
from tidegate.gate.backlog import Backlog
from tidegate.gate.standing import Extent
from tidegate.sink.excerpt import SHOWN_ROWS, Excerpt
from tidegate.state.inspect import size_text

_TWO_COLUMNS = 76
"""The narrowest terminal with two numbers beside each other."""

_LEFT_LABEL, _LABEL = 10, 20
_FRESH_S = 3.0
"""How long a change of instances stands out."""

_MOST_BLOCKS = 12
_MOST_SHARES = 4
_LEAST_ROWS = 3
_TOLD_START_S = 0.5

Pair = tuple[str, Text]


@dataclass(frozen=True)
class AtHand:
    """The batch that runs: for how long, with how many rows, and how far its tasks are.

    `rows` is None while its rows are being chosen, `tasks` while there is nothing to run them.
    """

    batch: int
    seconds: float
    rows: int | None
    tasks: Tasks | None


@dataclass(frozen=True)
class Result:
    """The newest rows of one output; None is the name of the only one."""

    output: str | None
    excerpt: Excerpt | None


@dataclass(frozen=True)
class Scene:
    """All that a picture shows, at one moment."""

    title: str
    state: str
    status: Status
    results: tuple[Result, ...]
    windows: bool
    now: float
    at_hand: AtHand | None = None
    expected: Expected | None = None
    figures: str = ""


def picture(scene: Scene, width: int, height: int) -> RenderableType:
    """The scene in `width` columns and, where three rows of results fit, at most `height` lines."""
    facts = _facts(scene)
    double = width >= _TWO_COLUMNS
    lines = max(len(side) for side in facts) if double else sum(len(side) for side in facts)
    above: list[RenderableType] = [_head(scene, width), Rule(style="dim")]
    above.append(_grid(facts if double else ((*facts[0], *facts[1]),)))
    every = (*_latency(scene), _predicted(scene), _figures(scene), _held(scene), _switches(scene))
    notes = [note for note in every if note is not None]
    works = _works(scene, max(height // 4, 2))
    above += notes
    above += [Text(), works] if works is not None else []
    # Beside them: the head and its rule, an empty line, and one line less than the terminal has,
    # so that it does not scroll.
    taken = lines + len(notes) + (works.row_count + 2 if works is not None else 0) + 4
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
    """Labels and values, left and right: how fast and how much, then how far."""
    status, newest = scene.status, scene.status.newest
    counters = status.counters
    if newest is None:
        left = [("rows in", _number(counters["rows_in"]))]
        if scene.at_hand is not None:
            left.append((f"batch {scene.at_hand.batch:,}", _at_hand(scene.at_hand, room=True)))
        return tuple(left), (("watermark (frontier)", _dim("none yet")),)
    rate = Text(f"{status.rows_per_second(scene.now):,.0f} rows/s", style="bold")
    left = [("input", rate)]
    if newest.extent is not None:
        left.append(("read", _read(newest.extent)))
    left += [
        ("rows in", _number(counters["rows_in"])),
        ("rows out", _number(counters["rows_out"])),
        ("batch time", _batch_time(newest, status.median_s)),
    ]
    if scene.at_hand is not None:
        left[-1] = (f"batch {scene.at_hand.batch:,}", _at_hand(scene.at_hand))
    if newest.backlog is not None:
        left.append(("backlog", _backlog(newest.backlog)))
    if scene.windows or newest.state_rows:
        left.append(("state", _state(newest)))
    right = [
        ("newest event", _time(newest.newest_us)),
        ("watermark (frontier)", _time(newest.frontier_us)),
        ("event-time lag", _lag(status.lag_us)),
        ("instances", _instances(newest, _fresh(scene))),
    ]
    if newest.utilisation:
        right.append(("utilisation", _utilisation(newest)))
    if status.start_s >= _TOLD_START_S:
        right.append(("started in", Text(duration_text(round(status.start_s * 1e6)))))
    troubles = [("late", "rows_late"), ("rejected", "rows_rejected")]
    whole = max(counters["rows_in"], 1)
    right += [(n, _trouble(counters[c], whole)) for n, c in troubles if counters[c]]
    if counters["rows_shed"]:  # no share of the rows: what is read twice may be shed twice
        right.append(("shed", Text(f"{counters['rows_shed']:,}", "yellow")))
    return tuple(left), tuple(right)


def _grid(sides: tuple[tuple[Pair, ...], ...]) -> Table:
    """The facts in one column or two; of two, the right one has room for a time and its label."""
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
    """The newest rows of every output, each with an equal part of the lines there are.

    Around its rows an output has an empty line, a title, a header, and a note of what is missing.
    Where several have no room for a row each, the first may have some, and the others a title.
    """
    count = len(scene.results)
    limit = min(SHOWN_ROWS, lines // count - 4)
    limits = [limit if count > 1 else max(limit, _LEAST_ROWS)] * count
    if limits[0] < 1:
        limits = [min(SHOWN_ROWS, lines - count - 3), *[0] * (count - 1)]
    shown: list[RenderableType] = []
    for place, (result, rows) in enumerate(zip(scene.results, limits, strict=True)):
        shown += [Text()] if rows > 0 or place == 0 else []
        if result.excerpt is None:
            shown.append(_nothing_yet(scene, result.output))
            continue
        shown.append(_title(scene, result.output, result.excerpt))
        shown += [result.excerpt.picture(width, rows)] if rows > 0 else []
    return shown


def _title(scene: Scene, output: str | None, excerpt: Excerpt) -> Text:
    title = Text(style="bold", no_wrap=True, overflow="ellipsis")
    if output is not None:
        title.append(f"{output}  ", style="bold cyan")
        rows = scene.status.output_rows[output]
        title.append(f"{rows:,} row{'' if rows == 1 else 's'} out, ", style="default not bold")
    return title.append(excerpt.title)


def _nothing_yet(scene: Scene, output: str | None) -> Text:
    again = output is None and scene.status.counters["rows_out"] > 0  # since the checkpoint began
    what = "window is complete" if scene.windows else "row has come out"
    text = Text("" if output is None else f"{output}  ", style="bold cyan")
    return text.append(f"no {'further ' if again else ''}{what} yet", style="dim not bold default")


def _works(scene: Scene, most: int) -> Table | None:
    """What each subquery does, where there are several."""
    works = scene.status.works
    if not works:
        return None
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("subquery", no_wrap=True, overflow="ellipsis", max_width=30)
    for name in ("instances", "tuples in", "rows out", "state rows", "cpu"):
        table.add_column(name, justify="right", no_wrap=True)
    cpu_us = sum(work.cpu_us for work in works.values()) or 1
    for name, work in list(works.items())[:most]:
        numbers = (work.instances, work.tuples, work.rows, work.state_rows)
        table.add_row(name, *(f"{n:,}" for n in numbers), f"{work.cpu_us / cpu_us:.0%}")
    if len(works) > most:
        table.add_row(_dim(f"and {len(works) - most:,} more"))
    return table


def _fresh(scene: Scene) -> Switch | None:
    """The last change of instances, while it is news."""
    switches = list(scene.status.switches)
    return switches[-1] if switches and scene.now - switches[-1].at < _FRESH_S else None


def _latency(scene: Scene) -> list[Text]:
    """From arrival to commit, of the newest batch and of recent ones, where sources are live."""
    newest = scene.status.newest
    if newest is None or scene.status.latency is None or newest.recent_latency is None:
        return []
    lines = []
    for label, found, of in (
        ("latency", scene.status.latency, "newest batch"),
        ("", newest.recent_latency, "recent batches"),
    ):
        line = Text(f"{label:<{_LEFT_LABEL}}  ", style="dim", no_wrap=True, overflow="ellipsis")
        for name, ms in found.percentiles():
            line.append(f"{name} ").append(f"{ms_text(ms):<8}", style="default not dim")
        lines.append(line.append(of))
    return lines


def _predicted(scene: Scene) -> Text | None:
    """What the model says of the newest second: latency on average, and how loaded the query is."""
    if scene.expected is None:
        return None
    line = Text(f"{'predicted':<{_LEFT_LABEL}}  ", style="dim", no_wrap=True, overflow="ellipsis")
    measured_s = scene.expected.measured_s
    pairs = [("mean", ms_text(scene.expected.latency_s * 1e3), "default not dim")]
    if measured_s is not None:
        pairs.append(("measured", ms_text(measured_s * 1e3), "default not dim"))
    falls_behind = scene.expected.load >= 1
    pairs.append(("load", f"{scene.expected.load:.0%}", "yellow" if falls_behind else "default"))
    for name, text, style in pairs:
        line.append(f"{name} ").append(f"{text:<8}", style=f"{style}")
    return line.append("falls behind" if falls_behind else "")


def _figures(scene: Scene) -> Text | None:
    """What was told of the newest window."""
    if not scene.figures:
        return None
    line = Text(f"{'window':<{_LEFT_LABEL}}  ", style="dim", no_wrap=True, overflow="ellipsis")
    return line.append(scene.figures, style="default not dim")


def _backlog(backlog: Backlog) -> Text:
    """What has arrived and was not taken when the newest batch ended."""
    rows, size, files = (backlog.total[unit] for unit in ("rows", "bytes", "files"))
    parts = [f"{files:,} file{'' if files == 1 else 's'}"] if files else []
    parts += [size_text(size)] if size else []
    parts += [f"{rows:,} row{'' if rows == 1 else 's'}"] if rows else []
    return Text(", ".join(parts)) if parts else Text("none")


def _held(scene: Scene) -> Text | None:
    """Which source the watermark waits for, where others are ahead of it."""
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
    """How far the batch that runs is; with its rows beside its tasks where there is room."""
    past = duration_text(round(at_hand.seconds * 1e6)) if at_hand.seconds >= 1 else "0 s"
    if at_hand.rows is None:
        return Text(f"{past}, reading event times")
    tasks, rows = at_hand.tasks, f"{at_hand.rows:,} rows"
    if tasks is None:
        return Text(f"{rows} to begin with")
    done = f"{tasks.done:,} of {tasks.total:,} tasks" if tasks.total else ""
    parts = [rows, done] if room else [done or rows]
    return Text(", ".join([past, *filter(None, parts)]))


def _read(extent: Extent) -> Text:
    """How much of the input is read."""
    text = Text(f"{extent.share:.0%}" if extent.share < 0.995 or extent.share == 1 else "99%")
    if extent.unit == "bytes":
        return text.append(f" of {size_text(int(extent.whole))}", style="dim")
    return text.append(f" of {extent.whole:,.0f} {extent.unit}" * bool(extent.unit), style="dim")


def _trouble(count: int, whole: int) -> Text:
    return Text(f"{count:,}", "yellow").append(f"  {count / whole:.2%}", style="dim")


def _instances(newest: BatchReport, fresh: Switch | None) -> Text:
    blocks = "■" * min(newest.instances, _MOST_BLOCKS)
    more = "…" if newest.instances > _MOST_BLOCKS else ""
    text = Text(f"{newest.instances} {blocks}{more}", style="bold yellow" if fresh else "cyan")
    text.append(f"  epoch {newest.epoch}", style="default not bold")
    return text.append(f"  was {fresh.before}" if fresh else "", style="yellow")


def _utilisation(newest: BatchReport) -> Text:
    """How busy each instance was; from whom to whom where there are many, or several subqueries."""
    shares = newest.utilisation
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
    line = Text(f"{'switches':<{_LEFT_LABEL}}  ", style="dim", no_wrap=True, overflow="ellipsis")
    return line.append(said, style="bold yellow not dim" if _fresh(scene) else "default not dim")


def _batch_time(newest: BatchReport, median_s: float) -> Text:
    last = duration_text(round(newest.seconds * 1e6))
    text = Text(last)
    return text.append(f"  median {duration_text(round(median_s * 1e6))}", style="dim")


def _state(newest: BatchReport) -> Text:
    if not newest.state_rows:
        return _dim("none")
    text = Text(f"{newest.state_rows:,} rows")
    return text.append(f"  {size_text(newest.state_bytes)}", style="dim")


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
