"""What a run did, as plain data: per batch while it runs, in sum at its end."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from tidegate.batch import MIN_US
from tidegate.driver.change_log import Changes, as_dicts, lines_of
from tidegate.driver.expected import Outcome
from tidegate.driver.latency import RECENT_BATCHES, Latencies, Quantiles
from tidegate.driver.side import side_lines
from tidegate.driver.window_digest import WindowDigest
from tidegate.elastic.load import RecentLoad
from tidegate.gate.backlog import UNITS, Backlog
from tidegate.gate.standing import Extent
from tidegate.state.epoch import counted, epoch_text
from tidegate.state.manifest import Manifest

KEPT_REPORTS = 4_096
KEPT_BYTES = 8 * 2**20
"""How many batches of a run the percentiles are over, at most, and what their reports may take.

With two instances a report takes about 5 kB, with sixty-four about 70 kB."""

_MISSING = (("rows_late", "late"), ("rows_rejected", "rejected"), ("rows_shed", "shed"))
"""What is told of rows that are in no result, where there are any."""

_MERGED = ("groups_merged", "parts_merged", "groups_split")
"""What was counted where a partitioner splits keys: see MergeWindows."""

_REPORT_BYTES, _COUNTS_BYTES, _COUNT_BYTES, _FLOAT_BYTES = 400, 180, 100, 32
"""What a report takes, each mapping in it, each entry of one, and each entry of a tuple; measured,
see the tests."""


@dataclass(frozen=True)
class Held:
    """The source that the frontier waits for, and its newest event time; -inf before it has one."""

    stream: str
    source: str
    newest_us: int


@dataclass(frozen=True)
class BatchReport:
    """One committed batch."""

    batch: int
    rows_in: int
    rows_out: int
    rows_late: int
    rows_rejected: int
    instances: int
    epoch: int
    frontier_us: int
    seconds: float
    spans_ms: Mapping[str, float]
    imbalance: float
    state_rows: int
    state_bytes: int
    rows_shed: int = 0
    """Rows that were dropped on purpose, as WITH SHED asks for."""
    tasks_ms: Mapping[str, float] = field(default_factory=dict)
    """Time of all tasks together, by what they did; they run side by side inside `operate`."""
    newest_us: int = MIN_US
    """The newest event time that any source has brought so far; -inf before there is one."""
    instance_counts: tuple[Mapping[str, int], ...] = ()
    """What each instance counted: outputs, cpu_us, and of a join comparisons and compared.

    Also what map tasks say through them: map_cpu_us, and taken, the tuples that they read.
    """
    subqueries: tuple[str, ...] = ()
    """Of which subquery each of them is."""
    utilisation: tuple[float, ...] = ()
    """The share of the time that each of them was busy in recent batches."""
    start_s: float = 0.0
    """What getting ready took before it, as starting Spark; not part of `seconds`."""
    output_rows: Mapping[str, int] = field(default_factory=dict)
    """Rows by output, where outputs have names."""
    state_by: Mapping[str, int] = field(default_factory=dict)
    """Rows of state by subquery, where there are several."""
    extent: Extent | None = None
    """How much of the input is read, where it has an end that is known."""
    held: Held | None = None
    """Who holds the frontier back; None when all sources have ended."""
    latency: Quantiles | None = None
    """From arrival to commit, of the tuples that it is the first to answer, where they are live."""
    recent_latency: Quantiles | None = None
    """The same over recent batches of this run, up to and with this one."""
    backlog: Backlog | None = None
    """What had arrived and was not taken when it ended; None where no source is live."""

    @property
    def comparisons(self) -> tuple[int, ...]:
        """Of a join, by instance: the pairs that the definition compares."""
        return tuple(c.get("comparisons", 0) for c in self.instance_counts)

    @property
    def compared(self) -> tuple[int, ...]:
        """Of a join, by instance: how many of these were looked at, at most."""
        return tuple(c.get("compared", 0) for c in self.instance_counts)


class Reports(Sequence[BatchReport]):
    """The newest reports of a run, oldest first, in bounded memory; the newest is always there."""

    def __init__(self, most: int = KEPT_REPORTS, most_bytes: int = KEPT_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._reports: deque[BatchReport] = deque()
        self.bytes = 0

    def append(self, report: BatchReport) -> None:
        self._reports.append(report)
        self.bytes += size_bytes(report)
        while len(self) > 1 and (len(self) > self._most or self.bytes > self._most_bytes):
            self.bytes -= size_bytes(self._reports.popleft())

    @overload
    def __getitem__(self, index: int) -> BatchReport: ...

    @overload
    def __getitem__(self, index: slice) -> list[BatchReport]: ...

    def __getitem__(self, index: int | slice) -> BatchReport | list[BatchReport]:
        return list(self)[index] if isinstance(index, slice) else self._reports[index]

    def __iter__(self) -> Iterator[BatchReport]:
        return iter(self._reports)

    def __len__(self) -> int:
        return len(self._reports)


def size_bytes(report: BatchReport) -> int:
    """About how much memory a report takes."""
    mappings = (
        report.spans_ms,
        report.tasks_ms,
        report.output_rows,
        report.state_by,
        *report.instance_counts,
        *(() if report.backlog is None else report.backlog.sources.values()),
        *(() if report.backlog is None else [report.backlog.rows]),
    )
    size = _REPORT_BYTES + _FLOAT_BYTES * len(report.utilisation)
    return size + sum(_COUNTS_BYTES + _COUNT_BYTES * len(m) for m in mappings)


@dataclass(repr=False)
class Summary:
    """The counts since the checkpoint began, and the speed of this run.

    A run may go on for ever, so only the newest batches are kept, and percentiles, medians and what
    is said of instances are over them.
    """

    counters: dict[str, int] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    """What a person calls the subqueries, by what a checkpoint does."""
    sides: Mapping[str, Any] = field(default_factory=dict)
    """Who was late, and the first row that was rejected: see `driver.side`."""
    places: Mapping[str, str] | None = None
    """What becomes of late and of rejected rows, where that is known."""
    epochs: Sequence[Mapping[str, Any]] = ()
    """The newest epochs; the checkpoint has the `epochs_logged` before them in files."""
    epochs_logged: int = 0
    reports: Reports = field(default_factory=Reports)
    finished: bool = False
    up_to_date: bool = False
    """Whether this run has taken all that was available, and left windows open."""
    state_rows: int = 0
    state_bytes: int = 0
    state_rows_max: int = 0
    state_bytes_max: int = 0
    """The most that there was when this run began, or after any of its batches."""
    batches: int = 0
    rows: int = 0
    seconds: float = 0.0
    start_seconds: float = 0.0
    first_seconds: float | None = None
    """What the first batch of this run took; others are not slowed by loading and compiling."""
    latencies: Callable[[], Latencies] = Latencies
    """Gives how long tuples of this run took from arrival to commit, where they are live."""
    backlog: Backlog | None = None
    """What had arrived and was not taken after the newest batch; None where no source is live."""
    backlog_max: dict[str, int] = field(default_factory=dict)
    """By unit, the most that there was of it after any batch of this run."""
    load: Callable[[], Mapping[str, RecentLoad]] = dict
    """Gives the load of each subquery over recent batches of this run."""
    windows: Callable[[], Mapping[str, WindowDigest]] = dict
    """Gives the figures of the windows of each subquery in this run, where some were told."""
    changes: Callable[[], Changes] = dict
    """Gives what the tasks of each subquery have changed by themselves in this run."""
    forecast: Callable[[], Outcome] = Outcome
    """Gives what was predicted of this run, where its input is live."""

    def __repr__(self) -> str:
        counts = self.counters
        late = "".join(f", {counts[name]:,} {word}" for name, word in _MISSING if counts.get(name))
        rows_in, rows_out = (counts.get(name, 0) for name in ("rows_in", "rows_out"))
        return (
            f"Summary({'finished' if self.finished else 'not finished'}: "
            f"{counted(rows_in, 'row')} in, {rows_out:,} out{late}; "
            f"{counted(self.batches, 'batch', 'batches')} in {self.seconds:.2f} s)"
        )

    def __str__(self) -> str:
        return self.text()

    def count(self, manifest: Manifest) -> None:
        """Say what a manifest says."""
        segments = manifest.segments()
        self.counters = dict(manifest.counters)
        self.sides = manifest.sides
        self.epochs = [
            {**e, "subquery": self.names.get(e["subquery"], e["subquery"])} for e in manifest.epochs
        ]
        self.epochs_logged = manifest.epochs_logged
        self.finished = manifest.finished
        self.state_rows = sum(s.rows for s in segments)
        self.state_bytes = sum(s.bytes for s in segments)
        self.state_rows_max = max(self.state_rows_max, self.state_rows)
        self.state_bytes_max = max(self.state_bytes_max, self.state_bytes)

    @property
    def state(self) -> str:
        """How the run has ended, in a word or two."""
        if self.finished:
            return "finished"
        return "up to date" if self.up_to_date else "stopped"

    def add(self, report: BatchReport) -> None:
        """Count a batch of this run."""
        self.reports.append(report)
        self.batches += 1
        self.rows += report.rows_in
        self.seconds += report.seconds
        self.start_seconds += report.start_s
        if self.first_seconds is None:
            self.first_seconds = report.seconds
        self.backlog = report.backlog
        if report.backlog is not None:
            for unit, count in report.backlog.total.items():
                self.backlog_max[unit] = max(self.backlog_max.get(unit, 0), count)

    def as_dict(self) -> dict[str, Any]:
        """The summary as JSON-ready data; the shape of `--summary FILE`."""
        reports = list(self.reports)
        return {
            "rows_in": self.counters.get("rows_in", 0),
            "rows_out": self.counters.get("rows_out", 0),
            "rows_late": self.counters.get("rows_late", 0),
            "rows_rejected": self.counters.get("rows_rejected", 0),
            "late": self.sides.get("late", {}),
            "first_rejected": self.sides.get("rejected"),
            "rows_shed": self.counters.get("rows_shed", 0),
            "batches": self.counters.get("batches", 0),
            "batches_this_run": self.batches,
            "finished": self.finished,
            "up_to_date": self.up_to_date,
            "start_seconds": round(self.start_seconds, 6),
            "seconds": round(self.seconds, 6),
            "rows_per_second": round(self.rows / self.seconds, 1) if self.seconds else 0.0,
            **self._batch_times([r.seconds * 1e3 for r in reports]),
            **self.latencies().as_dict(),
            "backlog": None
            if self.backlog is None
            else {**self.backlog.total, "sources": {**self.backlog.sources}},
            "backlog_max": dict(self.backlog_max) if self.backlog is not None else None,
            "spans_ms": _medians([r.spans_ms for r in reports]),
            "tasks_ms": _medians([r.tasks_ms for r in reports]),
            "comparisons": self.counters.get("comparisons", 0),
            "compared": self.counters.get("compared", 0),
            **{name: self.counters.get(name, 0) for name in _MERGED},
            "per_instance": self._per_instance(),
            "load": {name: load.as_dict() for name, load in self.load().items()},
            "windows": {name: digest.as_dict() for name, digest in self.windows().items()},
            "partitioner_changes": as_dicts(self.changes()),
            **self._forecast(),
            "epochs": [dict(e) for e in self.epochs],
            "epochs_logged": self.epochs_logged,
            "imbalance": round(float(np.median([r.imbalance for r in reports])), 4)
            if reports
            else 0.0,
            "state_rows": self.state_rows,
            "state_bytes": self.state_bytes,
            "state_rows_max": self.state_rows_max,
            "state_bytes_max": self.state_bytes_max,
        }

    def _batch_times(self, kept_ms: Sequence[float]) -> dict[str, Any]:
        """Percentiles over all batches that are kept, those after the first, and recent ones."""
        later = kept_ms[1:] if self.batches == len(kept_ms) else kept_ms
        return {
            "batch_ms": _percentiles(kept_ms),
            "first_batch_ms": None
            if self.first_seconds is None
            else round(self.first_seconds * 1e3, 3),
            "later_batches_ms": _percentiles(later) if later else None,
            "recent_batches_ms": _percentiles(kept_ms[-RECENT_BATCHES:]),
        }

    def _forecast(self) -> dict[str, Any]:
        """What was predicted, and how well a policy did, where there is something to tell."""
        found = self.forecast()
        judged = None if found.saso is None else {n: s.as_dict() for n, s in found.saso.items()}
        return {"predicted": found.as_dict(), "saso": judged}

    def _per_instance(self) -> list[dict[str, Any]]:
        """What each instance counted, over the batches that are kept."""
        total: dict[tuple[str, int], dict[str, Any]] = {}
        for report in list(self.reports):  # a batch may end meanwhile
            seen: Counter[str] = Counter()
            for name, counts in zip(report.subqueries, report.instance_counts, strict=True):
                number = seen[name]
                seen[name] += 1
                one = total.setdefault((name, number), {"subquery": name, "instance": number})
                for what in ("comparisons", "compared", "outputs", "cpu_us"):
                    one[what] = one.get(what, 0) + counts.get(what, 0)
        return [total[key] for key in sorted(total)]

    def _speed(self, said: Mapping[str, Any]) -> str:
        """How fast the batches of this run were, and how many there were before it."""
        if not self.batches:
            return f"{counted(said['batches'], 'batch', 'batches')}, none in this run"
        before, later_ms = said["batches"] - self.batches, said["later_batches_ms"]
        batch_ms = later_ms or said["batch_ms"]
        first = f"; the first {ms_text(said['first_batch_ms'])}" if later_ms else ""
        started = f", started in {self.start_seconds:.1f} s" if self.start_seconds > 0.1 else ""
        return (
            f"{counted(self.batches, 'batch', 'batches')} in {self.seconds:.2f} s, "
            f"{said['rows_per_second']:,.0f} rows/s{started}"
            f"{f', after {before:,} before this run' if before else ''}\n"
            f"batch time p50 {batch_ms['p50']:.0f} ms, p95 {batch_ms['p95']:.0f} ms, "
            f"p99 {batch_ms['p99']:.0f} ms{first}"
        )

    def _arrival_lines(self) -> list[str]:
        """How long live tuples took from arrival to commit, and what has not been taken."""
        lines, found = [], self.latencies()
        if found.first is not None:
            parts = [f"{n} {ms_text(ms)}" for n, ms in (found.later or found.first).percentiles()]
            first = f"; the first batch {ms_text(found.first.max_ms)} at most"
            told_apart = first if found.later else ""
            lines.append(f"latency {', '.join(parts)}, from arrival to commit{told_apart}")
        if self.backlog is not None:
            now, most = backlog_text(self.backlog.total), backlog_text(self.backlog_max)
            lines.append(f"backlog {now}" + (f", at most {most}" if most != now else ""))
        return lines

    def _state_text(self) -> str:
        """The most state that there was, and what there is now, where that is less."""
        text = f"state at most {self.state_rows_max:,} rows, {self.state_bytes_max:,} bytes"
        now = (self.state_rows, self.state_bytes)
        if now in ((0, 0), (self.state_rows_max, self.state_bytes_max)):
            return text
        return f"{text}, now {now[0]:,} rows, {now[1]:,} bytes"

    def window_lines(self) -> list[str]:
        """The figures of windows that are for people, by subquery."""
        return [
            f"{name}, {counted(digest.windows, 'window')}: {digest.line}"
            for name, digest in self.windows().items()
            if digest.line
        ]

    def text(self) -> str:
        """The summary in a few lines, for the end of a run in a terminal."""
        d, late = self.as_dict(), self.counters.get("rows_late", 0)
        lines = [
            f"{self.state}: {d['rows_in']:,} rows in, "
            f"{d['rows_out']:,} out, {late:,} late, {d['rows_rejected']:,} rejected"
            + (f", {d['rows_shed']:,} shed" if d["rows_shed"] else ""),
            self._speed(d),
            *self._arrival_lines(),
            *self.forecast().lines(),
            f"{self._state_text()}; imbalance {d['imbalance']:.2f}",
        ]
        if d["comparisons"]:
            compared, candidates = (_short(d[n]) for n in ("compared", "comparisons"))
            lines.append(f"join compared {compared} of {candidates} candidate pairs")
        if d["groups_merged"]:
            groups, parts, split = (d[name] for name in _MERGED)
            lines.append(f"merged {groups:,} groups from {parts:,} parts; {split:,} were split")
        lines += self.window_lines()
        lines += lines_of(self.changes())
        if self.epochs_logged:
            lines.append(f"{self.epochs_logged:,} earlier epochs are in the checkpoint")
        several = len({e["subquery"] for e in self.epochs}) > 1
        lines += [
            f"{e['subquery'] + ' ' if several else ''}{epoch_text(e)}"
            for e in self.epochs
            if e["epoch"] or "by" in e
        ]
        lines += side_lines(self.sides, self.counters, self.places)
        return "\n".join(lines)


def _short(count: int) -> str:
    """A count with about three digits: 950, 24.3 k, 97.7 M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count}"


def ms_text(ms: float) -> str:
    """Milliseconds with about three digits: 0.85 ms, 12 ms, 4.3 s."""
    if ms >= 9_950:
        return f"{ms / 1e3:,.0f} s"
    if ms >= 999.5:
        return f"{ms / 1e3:.1f} s"
    return f"{ms:.{0 if ms >= 9.95 else 1 if ms >= 0.995 else 2}f} ms"


def backlog_text(counts: Mapping[str, int]) -> str:
    """What waits, in the units there are of it: 1,204 rows, or 3 files and 80,112 bytes."""
    some = [
        counted(counts[unit], unit.removesuffix("s")) for unit in reversed(UNITS) if counts[unit]
    ]
    return " and ".join(some) or "none"


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    shares = {"p50": 50, "p95": 95, "p99": 99, "max": 100}
    return {name: _percentile(values, percent) for name, percent in shares.items()}


def _percentile(values: Sequence[float], percent: int) -> float:
    return round(float(np.percentile(values, percent)), 3) if len(values) else 0.0


def _medians(spans: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = sorted({n for s in spans for n in s})
    return {n: _percentile([s.get(n, 0.0) for s in spans], 50) for n in names}
