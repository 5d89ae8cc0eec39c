"""A scan join of two live streams that follows a trace of rates, and what its batches were.

What `model_accuracy.py` and `autoscale_engine.py` share. A run can be kept as a file, so that what
is made of it can be worked on without running it again.
"""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.model.cost.sample import BatchSample
from tidegate.model.join.trace import Trace
from tidegate.model.operation import Floats, Lookback

STEP_S = 0.25
"""The steps of rates."""
LATE_S = 20.0
"""A run that is so much later than its trace has fallen behind: it is stopped, and says so."""
WARM = "rows=20000&rate=2000"
"""What is joined first, as fast as it can be: Spark starts, and everything gets warm."""


@dataclass(frozen=True)
class Predicate:
    """What is joined on, of values from 1 to `domain`."""

    text: str
    domain: int


BAND = Predicate("r.x BETWEEN s.a - 10 AND s.a + 10 AND r.y BETWEEN s.b - 10 AND s.b + 10", 200)
"""The paper's: one pair of 100 is a result, and a result costs far more than a comparison."""
DISTANCE = Predicate("(r.x - s.a) * (r.x - s.a) + (r.y - s.b) * (r.y - s.b) <= 100", 2_000)
"""One that takes an instance longer to compare, and of whose 10,000 pairs or so one is a result."""


@dataclass(frozen=True)
class Batch:
    """When a batch ended, the latencies of its tuples and how many, and the rest of it.

    `after_s` is the part of it that came after the commit.
    """

    end_s: float
    latency_sum_s: float
    answered: int
    after_s: float
    sample: BatchSample

    @property
    def seconds(self) -> float:
        return self.sample.seconds


@dataclass(frozen=True)
class Forecasted:
    """What the query itself predicted of a second, and measured in it, as its status has it."""

    end_s: float
    latency_s: float
    measured_s: float
    throughput: float
    measured: float


@dataclass(frozen=True)
class Ran:
    """One run: times are from when its streams began."""

    batches: list[Batch]
    forecasts: list[Forecasted]
    status: dict[str, Any]

    def left_s(self, trace: Trace) -> float:
        """How many seconds of the trace were not worked off when it ended."""
        due = np.cumsum((trace.r.sum(axis=1) + trace.s.sum(axis=1)) * STEP_S)
        done = sum(batch.sample.tuples for batch in self.batches)
        return float(STEP_S * (due > done + 0.01 * due[-1]).sum())

    def keep(self, file: Path) -> None:
        """Write it, but for its status."""
        batches = [[*astuple(b)[:-1], list(astuple(b.sample))] for b in self.batches]
        kept = {"batches": batches, "forecasts": [astuple(f) for f in self.forecasts]}
        file.write_text(json.dumps(kept))

    @staticmethod
    def kept(file: Path) -> Ran:
        found = json.loads(file.read_text())
        batches = [Batch(*values, BatchSample(*sample)) for *values, sample in found["batches"]]
        return Ran(batches, [Forecasted(*f) for f in found["forecasts"]], {})


def held(rates: Floats, seconds: float) -> Floats:
    """The same rates in steps, over so many seconds."""
    places = np.arange(0, seconds, STEP_S) * len(rates) / seconds
    return rates[np.minimum(places.astype(int), len(rates) - 1)]


def shared(r: Floats, s: Floats, sources: int) -> Trace:
    """A trace of several sources a side that are all alike."""
    columns = [np.repeat(of[:, None] / sources, sources, axis=1) for of in (r, s)]
    return Trace(np.arange(len(r)) * STEP_S, columns[0], columns[1], STEP_S)


def run(
    trace: Trace,
    window: Lookback,
    work: Path,
    master: str,
    *,
    instances: int = 1,
    policy: str | None = None,
    batch_rows: int | None = None,
    predicate: Predicate = BAND,
) -> Ran:
    """The engine over a trace, when it is warm; no longer than the trace and LATE_S."""
    import tidegate as tg

    names = [f"{side}{n}" for side in "rs" for n in range(trace.r.shape[1])]
    rates = np.concatenate((trace.times[:, None], trace.r, trace.s), axis=1)
    file = work / "rates.csv"
    np.savetxt(file, rates, "%.6g", ",", header=",".join(["t", *names]), comments="")
    extent = (
        f"ROWS {window.rows:.0f}"
        if window.rows < np.inf
        else f"RANGE {window.seconds * 1000:.0f} MILLISECONDS"
    )
    paced, session = f"pace={file}", tg.Session(master=master)
    options: dict[str, Any] = {"method": "scan", "instances": instances}
    paced_options = {"policy": policy} | ({"batch_rows": batch_rows} if batch_rows else {})
    for name, pace in (("warm", WARM), ("checkpoint", paced)):
        with captured() as found:
            query = session.sql(sql_of(pace, trace.r.shape[1], extent, predicate)).start(
                sink=tg.sink.call(lambda batch, rows: None),
                checkpoint=str(work / name),
                **options,
                **({"batch_rows": 400} if pace == WARM else paced_options),
            )
            query.wait(len(trace) * STEP_S + LATE_S)
            query.stop()
    return replace(found, status=query.status())


def sql_of(pace: str, sources: int, extent: str, on: Predicate) -> str:
    """The join of the paper, of streams that come at a pace."""
    streams = [
        f"CREATE STREAM {side} FROM "
        + ", ".join(
            f"'generator:{side}?{pace}{'' if pace == WARM else f'&column={side}{n}'}&seed={n}"
            f"&domain={on.domain}&start=2024-01-01T00:00:00Z'"
            for n in range(sources)
        )
        + " TIME ts;"
        for side in "rs"
    ]
    return "\n".join(streams) + (
        f"\nSELECT r.x, r.y, s.a, s.b FROM r [{extent}] JOIN s [{extent}] ON {on.text}"
    )


class captured:
    """Notes every batch of a run in this process, and when its streams began."""

    def __enter__(self) -> Ran:
        from tidegate import schedule
        from tidegate.model.live.forecast import Forecast
        from tidegate.source.generator import RowPace

        self._found = Ran([], [], {})
        self._raw: list[tuple[float, Any, tuple[float, int], float]] = []
        self._forecasts: list[tuple[float, Any]] = []
        self._begun: list[float] = []
        clock, self._restore = schedule.current().clock, (Forecast.committed, RowPace.begin)
        committed, begin = self._restore
        raw, begun, forecasts = self._raw, self._begun, self._forecasts

        def noted(self: Forecast, measured: Any, latency: tuple[float, int], after: float) -> None:
            committed(self, measured, latency, after)
            raw.append((clock.now(), measured, latency, after))
            newest = self._past[-1] if self._past else None
            if newest is not None and (not forecasts or forecasts[-1][1] is not newest):
                forecasts.append((clock.now(), newest))

        def began(self: RowPace, rows: int) -> None:
            if self._begun_at is None:
                begun.append(clock.now())
            begin(self, rows)

        Forecast.committed, RowPace.begin = noted, began  # type: ignore[method-assign]
        return self._found

    def __exit__(self, *_: object) -> None:
        from tidegate.model.live.forecast import Forecast
        from tidegate.model.observation import observed_of
        from tidegate.source.generator import RowPace

        Forecast.committed, RowPace.begin = self._restore  # type: ignore[method-assign]
        begun = max(self._begun, default=0.0)
        for now, measured, latency, after_s in self._raw:
            (seen,) = observed_of(measured)
            after_s += seen.between_s
            self._found.batches.append(Batch(now - begun, *latency, after_s, seen.sample()))
        self._found.forecasts.extend(
            Forecasted(now - begun, s.latency_s, s.measured_s, s.throughput, s.measured)
            for now, s in self._forecasts
        )


def spread(batches: list[Batch], amounts: Floats, edges: Floats) -> Floats:
    """Amounts of batches by second: each comes evenly between the start and the end of its own."""
    ends = np.array([b.end_s for b in batches])
    starts = ends - np.array([b.seconds for b in batches])
    times = np.maximum.accumulate(np.stack((starts, ends), axis=1).reshape(-1))
    total = np.repeat(np.concatenate(([0.0], np.cumsum(amounts))), 2)[1:-1]
    found: Floats = np.diff(np.interp(edges, times, total, left=0.0))
    return found
