"""Makes the report of each batch and the summary of a run, both from the table of metrics."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidegate.batch import MIN_US
from tidegate.driver.metric.fold import Fold, per_instance
from tidegate.driver.metric.metric import CommittedBatch, Where
from tidegate.driver.metric.registry import (
    COUNTERS,
    EACH,
    LEVELS,
    METRICS,
    PLACES,
    lines_at,
    rows_line,
)
from tidegate.driver.metric.text import backlog_text, ms_text
from tidegate.driver.report.change_log import Changes, as_dicts, lines_of
from tidegate.driver.report.decision_text import budget_lines, controller_lines
from tidegate.driver.report.latency import LatencyLog
from tidegate.driver.report.side import side_lines
from tidegate.driver.report.window_log import WindowDigest
from tidegate.elastic.load import RecentLoad
from tidegate.gate.backlog import Backlog
from tidegate.model.live.expectation import ForecastSummary
from tidegate.state.epoch import counted, epoch_text
from tidegate.state.manifest import Manifest

KEPT_REPORTS = 4_096
KEPT_BYTES = 8 * 2**20
"""The most reports that are kept for percentiles, and the most memory that they may take.

With two instances a report takes about 5 kB, with sixty-four about 70 kB."""

_REPORT_BYTES, _COUNTS_BYTES, _COUNT_BYTES, _FLOAT_BYTES = 400, 180, 100, 32
"""The measured bytes of a report, of each dict in it, of each entry of a dict, and of each entry of
a tuple (see the tests)."""

_OF_BATCHES = tuple(
    (m.name, PLACES[m.name]) for m in METRICS if m.over is not None and m.kept is None
)
"""The metrics that fold over batches, and their places in a report; `Summary.count` folds those
that are read off the state."""


@dataclass(frozen=True)
class BatchReport:
    """The value of each metric for one committed batch, in the order of the table.

    Each is also an attribute: `report.rows_in`.
    """

    values: tuple[Any, ...]

    @staticmethod
    def of(batch: CommittedBatch) -> BatchReport:
        return BatchReport(tuple([metric.of(batch) for metric in METRICS]))

    def __getattr__(self, name: str) -> Any:
        place = PLACES.get(name)
        if place is None:
            raise AttributeError(f"no metric has this name: {name}")
        return self.values[place]


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

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index] if isinstance(index, slice) else self._reports[index]

    def __iter__(self) -> Iterator[BatchReport]:
        return iter(self._reports)

    def __len__(self) -> int:
        return len(self._reports)


def size_bytes(report: BatchReport) -> int:
    """About how many bytes a report takes."""
    return _REPORT_BYTES + sum([_size_bytes(v) for v in report.values if type(v) in _SIZED])


def _size_bytes(value: Any) -> int:
    """The bytes of a container value, besides its slot."""
    if type(value) is dict:
        return _COUNTS_BYTES + _COUNT_BYTES * len(value)
    if type(value) is Backlog:
        return sum(map(_size_bytes, (*value.sources.values(), value.rows)))
    if not value or type(value[0]) is str:
        return 0
    return sum([_size_bytes(v) if type(v) is dict else _FLOAT_BYTES for v in value])


_SIZED = frozenset((dict, tuple, Backlog))


@dataclass(repr=False)
class Summary:
    """The counts since the checkpoint began, and the speed of this run.

    A run may be endless, so only the newest reports are kept; percentiles, medians and figures of
    instances cover only those. Totals over all batches are in `folds`, by metric.
    """

    manifest: Manifest = field(default_factory=lambda: Manifest(-1, {}, MIN_US))
    """The newest manifest that is counted. It is set last, so that a reader who sees its batch also
    sees its rows."""
    counters: dict[str, int] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    """The names of the subqueries by their keys in the checkpoint."""
    sides: Mapping[str, Any] = field(default_factory=dict)
    """The record of late and rejected rows: see `driver.side`."""
    places: Mapping[str, str] | None = None
    """Where late and rejected rows go, if that is known."""
    epochs: Sequence[Mapping[str, Any]] = ()
    """The newest epochs; the checkpoint has the `epochs_logged` before them in files."""
    epochs_logged: int = 0
    digests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The digest of all rows of each output since the checkpoint began."""
    reports: Reports = field(default_factory=Reports)
    finished: bool = False
    up_to_date: bool = False
    """Whether this run has read all that was available and left windows open."""
    batches: int = 0
    rows: int = 0
    seconds: float = 0.0
    folds: Mapping[str, Fold] = field(
        default_factory=lambda: {m.name: m.over() for m in METRICS if m.over is not None}
    )
    latencies: Callable[[], Mapping[str, Any]] = LatencyLog(0.0).as_dict
    """Returns the latencies of this run, if its sources are live."""
    load: Callable[[], Mapping[str, RecentLoad]] = dict
    """Returns the load of each subquery over recent batches of this run."""
    windows: Callable[[], Mapping[str, WindowDigest]] = dict
    """Returns the figures of the windows of each subquery in this run, if there are any."""
    changes: Callable[[], Changes] = dict
    """Returns the changes that operators made on their own in this run."""
    forecast: Callable[[], ForecastSummary] = ForecastSummary
    """Returns the model's forecasts for this run, if its input is live."""
    controller: Callable[[], Mapping[str, Any] | None] = lambda: None
    """Returns the aim and the decisions of the policy, if it explains itself."""
    budget: Callable[[], Mapping[str, Any] | None] = lambda: None
    """Returns what the query wants and gets of the session's budget, if there is one."""
    lineage: Callable[[], Mapping[str, int]] = dict
    """Returns how many lineage events were sent and lost, if there are any."""

    def __repr__(self) -> str:
        counts = self.counters
        rows_in, rows_out, *missing = (m for m in COUNTERS if Where.ROWS in m.where)
        told = [f", {counts[m.name]:,} {m.label}" for m in missing if counts.get(m.name)]
        return (
            f"Summary({'finished' if self.finished else 'not finished'}: "
            f"{counted(counts.get(rows_in.name, 0), 'row')} in, "
            f"{counts.get(rows_out.name, 0):,} out{''.join(told)}; "
            f"{counted(self.batches, 'batch', 'batches')} in {self.seconds:.2f} s)"
        )

    def __str__(self) -> str:
        return self.text()

    def count(self, manifest: Manifest) -> None:
        """Take over the counts of a manifest."""
        self.counters = dict(manifest.counters)
        self.sides = manifest.sides
        self.epochs = [
            {**e, "subquery": self.names.get(e["subquery"], e["subquery"])} for e in manifest.epochs
        ]
        self.epochs_logged = manifest.epochs_logged
        self.finished = manifest.finished
        self.digests = manifest.digests
        segments = manifest.segments()
        for metric in LEVELS:
            if metric.kept is not None and metric.name in self.folds:
                self.folds[metric.name].add(metric.kept(segments))
        self.manifest = manifest

    @property
    def state(self) -> str:
        """How the run has ended: `finished`, `up to date` or `stopped`."""
        if self.finished:
            return "finished"
        return "up to date" if self.up_to_date else "stopped"

    def add(self, report: BatchReport) -> None:
        """Add the report of a batch of this run."""
        self.reports.append(report)
        self.batches += 1
        self.rows += report.rows_in
        self.seconds += report.seconds
        for name, place in _OF_BATCHES:
            self.folds[name].add(report.values[place])

    def as_dict(self) -> dict[str, Any]:
        """The summary as JSON-ready data; the shape of `--summary FILE`."""
        kept = list(self.reports)  # a batch may end meanwhile
        found = {metric.name: self.counters.get(metric.name, 0) for metric in COUNTERS}
        for name, fold in self.folds.items():
            found |= fold.as_dict(name, kept)
        forecast = self.forecast()
        return {
            **found,
            "batches_this_run": self.batches,
            "finished": self.finished,
            "up_to_date": self.up_to_date,
            "rows_per_second": round(self.rows / self.seconds, 1) if self.seconds else 0.0,
            "late": self.sides.get("late", {}),
            "first_rejected": self.sides.get("rejected"),
            **self.latencies(),
            "per_instance": per_instance(kept, EACH),
            "load": {name: load.as_dict() for name, load in self.load().items()},
            "windows": {name: digest.as_dict() for name, digest in self.windows().items()},
            "partitioner_changes": as_dicts(self.changes()),
            "predicted": forecast.as_dict(),
            "saso": None
            if forecast.saso is None
            else {name: saso.as_dict() for name, saso in forecast.saso.items()},
            "controller": self.controller(),
            "budget": self.budget(),
            "epochs": [dict(e) for e in self.epochs],
            "epochs_logged": self.epochs_logged,
            "digests": {name: dict(of) for name, of in self.digests.items()},
            "lineage": dict(self.lineage()) or None,
        }

    def window_lines(self) -> list[str]:
        """The figures of windows that are for people, by subquery."""
        return [
            f"{name}, {counted(digest.windows, 'window')}: {digest.line}"
            for name, digest in self.windows().items()
            if digest.line
        ]

    def text(self) -> str:
        """The summary in a few lines, for the end of a run in a terminal."""
        found = self.as_dict()
        lines = [
            f"{self.state}: {rows_line(found)}",
            *_speed_lines(found),
            *_arrival_lines(found),
            *self.forecast().lines(),
            *controller_lines(found["controller"]),
            *budget_lines(found["budget"]),
            f"{_state_text(found)}; imbalance {found['imbalance']:.2f}",
            *lines_at(Where.SUMMARY, found),
            *self.window_lines(),
            *lines_of(self.changes()),
        ]
        if self.epochs_logged:
            lines.append(f"{self.epochs_logged:,} earlier epochs are in the checkpoint")
        lines += [digest_line(name, of) for name, of in self.digests.items()]
        several = len({e["subquery"] for e in self.epochs}) > 1
        lines += [
            f"{e['subquery'] + ' ' if several else ''}{epoch_text(e)}"
            for e in self.epochs
            if e["epoch"] or "by" in e
        ]
        lost = self.lineage().get("lost")
        lines += [f"{counted(lost, 'lineage event')} lost; the log says why"] if lost else []
        lines += side_lines(self.sides, self.counters, self.places)
        return "\n".join(lines)


def digest_line(name: str, of: Mapping[str, Any]) -> str:
    """The digest of an output, for people."""
    output = f" of output {name}" if name else ""
    return f"digest{output} {of['digest']}, {counted(of['rows'], 'row')}"


def _speed_lines(found: Mapping[str, Any]) -> list[str]:
    """How fast the batches of this run were, and how many there were before it."""
    batches = found["batches_this_run"]
    if not batches:
        return [f"{counted(found['batches'], 'batch', 'batches')}, none in this run"]
    before, later_ms = found["batches"] - batches, found["later_batches_ms"]
    batch_ms, start_s = later_ms or found["batch_ms"], found["start_seconds"]
    first = f"; the first {ms_text(found['first_batch_ms'])}" if later_ms else ""
    started = f", started in {start_s:.1f} s" if start_s > 0.1 else ""
    return [
        f"{counted(batches, 'batch', 'batches')} in {found['seconds']:.2f} s, "
        f"{found['rows_per_second']:,.0f} rows/s{started}"
        f"{f', after {before:,} before this run' if before else ''}",
        f"batch time p50 {batch_ms['p50']:.0f} ms, p95 {batch_ms['p95']:.0f} ms, "
        f"p99 {batch_ms['p99']:.0f} ms{first}",
    ]


def _arrival_lines(found: Mapping[str, Any]) -> list[str]:
    """How long live tuples took from arrival to commit, and what has not been taken."""
    lines = []
    first, later = found["latency_first_batch_ms"], found["latency_later_batches_ms"]
    if first is not None:
        parts = [f"{n} {ms_text((later or first)[n])}" for n in ("p50", "p95", "p99", "max")]
        told_apart = f"; the first batch {ms_text(first['max'])} at most" if later else ""
        lines.append(f"latency {', '.join(parts)}, from arrival to commit{told_apart}")
    if found["backlog"] is not None:
        now, most = (backlog_text(found[name]) for name in ("backlog", "backlog_max"))
        lines.append(f"backlog {now}" + (f", at most {most}" if most != now else ""))
    return lines


def _state_text(found: Mapping[str, Any]) -> str:
    """The most state that there was, and what there is now, where that is less."""
    now = found["state_rows"], found["state_bytes"]
    most = found["state_rows_max"], found["state_bytes_max"]
    text = f"state at most {most[0]:,} rows, {most[1]:,} bytes"
    return text if now in ((0, 0), most) else f"{text}, now {now[0]:,} rows, {now[1]:,} bytes"
