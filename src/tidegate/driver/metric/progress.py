"""Says how far a query is: its batch, its watermark, its instances, its input and its state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.batch import MAX_US, MIN_US
from tidegate.driver.metric.family import MetricSample, RunView, Samples, by, event_s, gauge
from tidegate.driver.metric.metric import CommittedBatch, RunMetric, level
from tidegate.remote.scheme import shown
from tidegate.version import __version__

if TYPE_CHECKING:
    from tidegate.gate.extent import InletReach
    from tidegate.plan.physical import Plan


@dataclass(frozen=True)
class SlowestSource:
    """The source that the frontier waits for, and its newest event time; -inf before it has one."""

    stream: str
    source: str
    newest_us: int


def _newest_us(batch: CommittedBatch) -> int:
    """The newest event time that any source has brought so far; -inf before there is one."""
    return max((source["floor_us"] for source in batch.manifest.sources), default=MIN_US)


def _slowest(batch: CommittedBatch) -> SlowestSource | None:
    """None when all sources have ended."""
    holder = batch.holder
    if holder is None:
        return None
    name = batch.plan.streams[holder.stream].name
    return SlowestSource(name, holder.source, holder.newest_us)


def _state_by_subquery(batch: CommittedBatch) -> dict[str, int]:
    """Rows of state, where there are several subqueries."""
    rows: Counter[str] = Counter()
    if len(batch.plan.subqueries) > 1:
        for key, segments in batch.manifest.operators.items():
            rows[batch.plan.names[key.split("/")[0]]] += sum(s.rows for s in segments)
    return dict(rows)


def _of_mappings(name: str) -> Callable[[RunView], Samples]:
    """What the mapping of each subquery says."""

    def read(view: RunView) -> Samples:
        return by(
            "subquery", ((view.plan.names[k], m[name]) for k, m in view.manifest.mappings.items())
        )

    return read


def _switch_times(view: RunView) -> Samples:
    """Of the newest switch of each subquery; nothing where there was none."""
    times = {e["subquery"]: e["switch_ms"] / 1e3 for e in view.summary.epochs if "by" in e}
    return by("subquery", times.items())


def _watermark(view: RunView) -> Iterator[MetricSample]:
    time = event_s(view.manifest.frontier_us)
    if time is not None:
        yield MetricSample((), time)


def streams_of(plan: Plan, subquery: int) -> frozenset[int]:
    """The streams whose tuples reach a subquery, through others or not."""
    found: set[int] = set()
    for prefix in plan.subqueries[subquery].prefixes:
        origin = prefix.origin
        found |= {origin} if isinstance(origin, int) else streams_of(plan, origin.subquery)
    return frozenset(found)


def _lags(alone: bool) -> Callable[[RunView], Samples]:
    """How far behind the newest event of its streams the watermark of each subquery is.

    That is the one of the query, or the one that its own streams would have `alone`.
    """

    def read(view: RunView) -> Iterator[MetricSample]:
        for number, subquery in enumerate(view.plan.subqueries):
            streams = streams_of(view.plan, number)
            own = [reach for reach in view.reaches if reach.stream in streams]
            mark_us = view.manifest.frontier_us
            if alone:  # what IDLE lets pass is behind the frontier
                mark_us = max(mark_us, min((one.reach_us for one in own), default=MAX_US))
            newest_us = max((one.newest_us for one in own), default=MIN_US)
            if newest_us > MIN_US and mark_us > MIN_US:
                lag_s = max(newest_us - mark_us, 0) / 1e6
                yield MetricSample((("subquery", subquery.name),), lag_s)

    return read


def _of_sources(
    of: Callable[[InletReach, int], float | None],
) -> Callable[[RunView], Iterable[MetricSample]]:
    """What `of` gives of each source and the newest event of all; of several alike the least."""

    def read(view: RunView) -> Iterator[MetricSample]:
        found: dict[tuple[str, str], InletReach] = {}
        for one in view.reaches:
            key = view.plan.streams[one.stream].name, shown(one.name)
            found[key] = min(found.get(key, one), one, key=lambda reach: reach.newest_us)
        newest_us = max((one.newest_us for one in view.reaches), default=MIN_US)
        for (stream, source), one in found.items():
            value = of(one, newest_us)
            if value is not None:
                yield MetricSample((("stream", stream), ("source", source)), value)

    return read


def _behind_s(one: InletReach, newest_us: int) -> float | None:
    """None before it has an event, and when it has ended."""
    known = one.newest_us > MIN_US and one.reach_us < MAX_US
    return (newest_us - one.newest_us) / 1e6 if known else None


def _state_rows(view: RunView) -> Samples:
    return by("subquery", () if view.report is None else view.report.state_by.items())


METRICS = (
    RunMetric(
        "batch",
        lambda batch: batch.manifest.batch,
        "batch",
        exports=(
            gauge(
                "query_info",
                "1 while the query runs, with the version of Tidegate.",
                lambda view: [MetricSample((("version", __version__),), 1)],
                ["version"],
            ),
        ),
    ),
    RunMetric(
        "instances",
        lambda batch: batch.manifest.instances,
        "instances",
        exports=(
            gauge(
                "instances",
                "Instances of each subquery.",
                _of_mappings("instances"),
                ["subquery"],
            ),
        ),
    ),
    RunMetric(
        "epoch",
        lambda batch: batch.manifest.epoch,
        "epoch",
        exports=(
            gauge(
                "epoch",
                "Epoch of each subquery: how often its buckets have been mapped to other instances "
                "since the checkpoint began.",
                _of_mappings("epoch"),
                ["subquery"],
            ),
            gauge(
                "switch_seconds",
                "Time of the newest switch of each subquery.",
                _switch_times,
                ["subquery"],
            ),
        ),
    ),
    RunMetric(
        "frontier_us",
        lambda batch: batch.manifest.frontier_us,
        "watermark (frontier)",
        "us",
        exports=(
            gauge(
                "watermark_timestamp_seconds",
                "Watermark (frontier) of the query: the event time up to which results are "
                "complete, in seconds since 1970.",
                _watermark,
            ),
            gauge(
                "watermark_lag_seconds",
                "Event time between the newest event of the streams of each subquery and the "
                "watermark of the query.",
                _lags(alone=False),
                ["subquery"],
            ),
            gauge(
                "local_watermark_lag_seconds",
                "Event time between the newest event of the streams of each subquery and the "
                "watermark that these streams alone would have.",
                _lags(alone=True),
                ["subquery"],
            ),
        ),
    ),
    RunMetric(
        "newest_us",
        _newest_us,
        "newest event",
        "us",
        exports=(
            gauge(
                "source_newest_event_timestamp_seconds",
                "Newest event time of each source, in seconds since 1970.",
                _of_sources(lambda one, _: event_s(one.newest_us)),
                ["stream", "source"],
            ),
            gauge(
                "source_lag_seconds",
                "Event time by which each source that has not ended is behind the newest event of "
                "all sources.",
                _of_sources(_behind_s),
                ["stream", "source"],
            ),
        ),
    ),
    # How much of the input is read, where it has an end that is known.
    RunMetric("extent", lambda batch: batch.extent, "read"),
    RunMetric("held", _slowest),
    level("state_rows", "state", lambda state: sum(s.rows for s in state)),
    level("state_bytes", "state", lambda state: sum(s.bytes for s in state), "bytes"),
    RunMetric(
        "state_by",
        _state_by_subquery,
        exports=(
            gauge(
                "subquery_state_rows",
                "State rows of each subquery, where there are several.",
                _state_rows,
                ["subquery"],
            ),
        ),
    ),
)
