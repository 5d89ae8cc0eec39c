"""The loads that controllers are compared over: the paper's joins, trades, bursty aggregates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from autoscale import JOIN

from tidegate.elastic.simulated_query import SimulatedLoad, SimulatedQuery
from tidegate.model.join.experiment import EXPERIMENTS
from tidegate.model.operation import Floats

SECONDS = 600
TUPLE_S = 1e-3
"""What a tuple of an aggregate takes of an instance."""

DEVELOPMENT, HELD_OUT = (1, 2), (5, 6)
"""Seeds of bursty loads: those that the controller was made with, and those it was not."""


REAL = {
    "taxi rides": ("taxi_green_2023q1", "dropoff_ts"),
    "cluster jobs": ("google_job_events", "ts"),
    "packets": ("packets_mlab_ndt", "ts"),
    "DNS": ("net_dns", "ts"),
    "TLS": ("net_tls", "ts"),
    "edits": ("wiki_edits_20150912", "ts"),
    "crypto trades": ("crypto_trades", "ts"),
    "crypto quotes": ("crypto_quotes", "ts"),
}
"""Real streams: the file of each, and its time."""

MEAN_RATE = 5_000
"""Real streams are brought to so many tuples a second."""


@dataclass(frozen=True)
class NamedLoad:
    """A load, and whether it is one of those that were not used in development."""

    name: str
    query: SimulatedQuery
    held_out: bool = False


def real_loads(folder: Path) -> list[NamedLoad]:
    """The rates of real streams, none of which was used in development."""
    return [
        NamedLoad(name, _aggregate(_real(folder / f"{file}.parquet", time)), held_out=True)
        for name, (file, time) in REAL.items()
    ]


def _real(path: Path, time: str) -> SimulatedLoad:
    """The rate of a stream in 600 parts of its busiest tenth, or of all of it if that is shorter.

    Streams of months are so played faster, and keep the shape of their bursts.
    """
    column = pq.read_table(path, columns=[time])[0].drop_null()
    times = np.sort(column.cast("int64").to_numpy())
    tenth = (times[-1] - times[0]) // 10
    span = max(tenth, min(SECONDS * 1_000_000, times[-1] - times[0]))
    starts = np.linspace(times[0], times[-1] - span, 50).astype(np.int64)
    within = np.searchsorted(times, starts + span) - np.searchsorted(times, starts)
    first = starts[within.argmax()]
    counts, _ = np.histogram(times, bins=SECONDS, range=(first, first + span))
    return _load(counts / counts.mean() * MEAN_RATE)


def every_load() -> list[NamedLoad]:
    joins = [NamedLoad(name, _join(name)) for name in EXPERIMENTS if name != "section7"]
    bursty = [
        NamedLoad(f"{kind} {seed}", _aggregate(make(seed)), seed in HELD_OUT)
        for kind, make in KINDS.items()
        for seed in (*DEVELOPMENT, *HELD_OUT)
    ]
    return joins + bursty


def _join(name: str) -> SimulatedQuery:
    """A join by comparisons; such a join cannot shed more or less while it runs."""
    trace = EXPERIMENTS[name]().trace
    load = SimulatedLoad(
        tuples=(trace.r + trace.s).sum(axis=1),
        work_s=JOIN.work(trace) * JOIN.costs.comparison_s,
        window=JOIN.window,
        costs=JOIN.costs,
    )
    return SimulatedQuery(load=load)


def _aggregate(load: SimulatedLoad) -> SimulatedQuery:
    return SimulatedQuery(load=load, most_share=0.95)


def _load(rates: Floats, hottest: Floats | None = None) -> SimulatedLoad:
    rates = np.clip(np.rint(rates), 100, 26_000)
    return SimulatedLoad(tuples=rates, work_s=rates * TUPLE_S, hottest=hottest)


def spikes(seed: int) -> SimulatedLoad:
    """A calm level with spikes of 3 to 25 seconds, up to three times as high."""
    draw = np.random.default_rng([seed, 1])
    rates = np.full(SECONDS, draw.uniform(3_000, 7_000))
    for start in range(60, SECONDS - 30, 75):
        at = start + int(draw.integers(0, 40))
        rates[at : at + int(draw.integers(3, 26))] *= draw.uniform(1.5, 3.0)
    return _load(rates * draw.gamma(400, 1 / 400, SECONDS))


def drifts(seed: int) -> SimulatedLoad:
    """Levels that change slowly, up and down, with some noise."""
    draw = np.random.default_rng([seed, 2])
    marks = np.arange(0, SECONDS + 150, 150)
    levels = draw.uniform(2_000, 18_000, len(marks))
    return _load(np.interp(np.arange(SECONDS), marks, levels) * draw.gamma(400, 1 / 400, SECONDS))


def flash_crowds(seed: int) -> SimulatedLoad:
    """Three crowds: up to five times the level within 20 seconds, and a slow decline."""
    draw = np.random.default_rng([seed, 3])
    base, rates = draw.uniform(2_000, 4_000), np.zeros(SECONDS)
    seconds = np.arange(SECONDS)
    for start in (60, 240, 420):
        since = seconds - (start + draw.integers(0, 60))
        rise = np.clip(since / draw.uniform(5, 20), 0, 1)
        fall = np.exp(-np.clip(since - 40, 0, None) / draw.uniform(30, 80))
        rates += draw.uniform(1.5, 4.0) * base * rise * fall
    return _load((base + rates) * draw.gamma(400, 1 / 400, SECONDS))


def diurnal(seed: int) -> SimulatedLoad:
    """Three days of 200 seconds each, with busy hours and noise."""
    draw = np.random.default_rng([seed, 4])
    phase = 2 * np.pi * (np.arange(SECONDS) / 200 + draw.random())
    rates = draw.uniform(8_000, 12_000) * (1 + 0.7 * np.sin(phase) + 0.1 * np.sin(3 * phase))
    return _load(rates * draw.gamma(100, 1 / 100, SECONDS))


def skew_shifts(seed: int) -> SimulatedLoad:
    """One bucket becomes hot and cools again, at rates that change in steps."""
    draw = np.random.default_rng([seed, 5])
    rates = np.repeat(draw.uniform(4_000, 12_000, SECONDS // 150), 150)
    hottest = np.repeat(draw.uniform(0.0, 0.08, SECONDS // 75), 75)
    return _load(rates * draw.gamma(400, 1 / 400, SECONDS), hottest)


KINDS: dict[str, Callable[[int], SimulatedLoad]] = {
    "spikes": spikes,
    "drift": drifts,
    "flash crowds": flash_crowds,
    "diurnal": diurnal,
    "skew shift": skew_shifts,
}
