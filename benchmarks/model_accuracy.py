"""The performance model beside the engine: predicted and measured throughput and latency.

    python benchmarks/model_accuracy.py                            all set-ups, a minute each
    python benchmarks/model_accuracy.py --seconds 20 --setups one-source --master none --no-plot

A scan join of two live streams with the rates of figure 7 of the model's paper (parts A to E),
shortened to `--seconds` with a window as many times shorter, and as many times higher as this
machine can bear: its peak is 0.6 of what the instances can do, or 1.5 times as much in the
set-ups with overload. What that is, a pilot run measures. The costs (alpha, beta, sigma, batch,
tuple) are then estimated from part B of the run itself, and predict all of it from its rates; the
errors are those of the other parts, second by second. Each run is a process of its own.
Results go to benchmarks/results/model_accuracy.json, pictures like the paper's figures 8 to 15 to
docs/model-throughput.svg, model-latency.svg and model-latency-terms.svg (extra `tidegate[plot]`).
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from measure import MASTER, RESULTS, common_arguments, give, in_child, write_report

from tidegate.elastic.sampled import sample_of
from tidegate.model.calibration import Calibration
from tidegate.model.estimator import Estimator
from tidegate.model.experiment import PART_S, section7
from tidegate.model.micro_batch import Batching
from tidegate.model.predict import predict
from tidegate.model.trace import Floats, Trace
from tidegate.model.window import TimeWindow, TupleWindow, Window

SECONDS, WARM_S, STEP_S = 60.0, 25.0, 0.25
"""How long the experiment is made, what goes before it (Spark starts), and the steps of rates."""
WINDOW_S, TUPLES = 60.0, 8_400
"""The paper's windows, of its experiment of 25 minutes."""
PEAK, OVERLOAD, PILOT = 0.6, 1.5, 0.3
BETWEEN_S = 0.001
CALIBRATED = "B"
BARS = {"throughput": 0.02, "latency": 0.10}
DOCS = Path(__file__).parents[1] / "docs"


@dataclass(frozen=True)
class Setup:
    """One way to run the join."""

    title: str
    sources: int = 1
    instances: int = 1
    tuples: bool = False
    peak: float = PEAK


SETUPS = {
    "one-source": Setup("one source a side"),
    "one-source-tuples": Setup("one source a side, windows of tuples", tuples=True),
    "overload": Setup("overload", peak=OVERLOAD),
    "overload-tuples": Setup("overload, windows of tuples", tuples=True, peak=OVERLOAD),
    "sources": Setup("three sources a side", sources=3),
    "sources-tuples": Setup("three sources a side, windows of tuples", sources=3, tuples=True),
    "instances": Setup("two instances, three sources a side", sources=3, instances=2),
    "instances-tuples": Setup(
        "two instances, three sources a side, windows of tuples", 3, instances=2, tuples=True
    ),
}


@dataclass(frozen=True)
class Measured:
    """One batch: when it ended, what it took and made, and the latencies of its tuples."""

    end_s: float
    seconds: float
    comparisons: float
    latency_sum_s: float
    tuples: int
    after_s: float
    sample: Any


def scaled(seconds: float, factor: float, sources: int) -> Trace:
    """The rates of the experiment, shortened and raised."""
    return scaled_trace(section7().trace, seconds, factor, sources, warm=0.1)


def scaled_trace(whole: Trace, seconds: float, factor: float, sources: int, warm: float) -> Trace:
    """A trace of one source a side, shortened and raised, for several sources that are all alike.

    It is after a warm-up at a part of its first rates, in which Spark starts.
    """
    shorter = len(whole) / seconds
    places = np.minimum((np.arange(0, seconds, STEP_S) * shorter).astype(int), len(whole) - 1)
    columns = []
    for of in (whole.r, whole.s):
        before = np.full(round(WARM_S / STEP_S), warm * float(of.mean()))
        rates = np.concatenate((before, of[places, 0])) * factor / sources
        columns.append(np.repeat(rates[:, None], sources, axis=1))
    times = np.arange(len(columns[0])) * STEP_S
    return Trace(times, columns[0], columns[1], STEP_S)


def window_of(setup: Setup, seconds: float, factor: float) -> Window:
    shorter = 5 * PART_S / seconds
    if setup.tuples:
        return TupleWindow(round(TUPLES / shorter * factor))
    return TimeWindow(round(WINDOW_S / shorter, 3))


def factor_for(costs: dict[str, float], setup: Setup, seconds: float) -> float:
    """How many times the paper's rates have the peak of part B at the load of a set-up."""
    window_s, r, s = WINDOW_S * seconds / (5 * PART_S), 250.0, 240.0
    held = (140.0, 140.0) if setup.tuples else (r, s)
    pairs = (r * held[1] + s * held[0]) * window_s * costs["comparison_s"] / setup.instances
    moved = (r + s) * costs["tuple_s"]
    return (math.sqrt(moved**2 + 4 * pairs * setup.peak) - moved) / (2 * pairs)


def run(
    setup: Setup,
    trace: Trace,
    window: Window,
    work: Path,
    master: str,
    policy: str | None = None,
) -> tuple[list[Measured], dict[str, Any]]:
    """The engine over a trace: its batches, in seconds from when the streams began, and status."""
    import tidegate as tg

    names = [f"{side}{n}" for side in "rs" for n in range(trace.r.shape[1])]
    rates = np.concatenate((trace.times[:, None], trace.r, trace.s), axis=1)
    file = work / "rates.csv"
    np.savetxt(file, rates, "%.6g", ",", header=",".join(["t", *names]), comments="")
    extent = (
        f"ROWS {window.rows:.0f}"
        if isinstance(window, TupleWindow)
        else f"RANGE {window.seconds * 1000:.0f} MILLISECONDS"
    )
    streams = [
        f"CREATE STREAM {side} FROM "
        + ", ".join(
            f"'generator:{side}?pace={file}&column={side}{n}&seed={n}&domain=200"
            "&start=2024-01-01T00:00:00Z'"
            for n in range(trace.r.shape[1])
        )
        + " TIME ts;"
        for side in "rs"
    ]
    sql = "\n".join(streams) + (
        f"\nSELECT r.x, r.y, s.a, s.b FROM r [{extent}] JOIN s [{extent}]"
        " ON r.x BETWEEN s.a - 10 AND s.a + 10 AND r.y BETWEEN s.b - 10 AND s.b + 10"
    )
    with captured() as found:
        session = tg.Session(master=master)
        query = session.sql(sql).start(
            sink=tg.sink.call(lambda batch, rows: None),
            checkpoint=str(work / "checkpoint"),
            method="scan",
            instances=setup.instances,
            policy=policy,
        )
        query.wait()
    return found, query.status()


class captured:
    """Notes every batch of a run in this process, and when its streams began."""

    def __enter__(self) -> list[Measured]:
        from tidegate import schedule
        from tidegate.driver.forecast import Forecast
        from tidegate.source.generator import Pace

        self._found: list[Measured] = []
        self._raw: list[tuple[float, Any, tuple[float, int], float]] = []
        self._begun: list[float] = []
        clock, self._restore = schedule.current().clock, (Forecast.committed, Pace.begin)
        committed, begin = self._restore
        raw, begun = self._raw, self._begun

        def noted(self: Forecast, measured: Any, latency: tuple[float, int], after: float) -> None:
            committed(self, measured, latency, after)
            raw.append((clock.now(), measured, latency, after))

        def began(self: Pace, rows: int) -> None:
            if self._begun_at is None:
                begun.append(clock.now())
            begin(self, rows)

        Forecast.committed, Pace.begin = noted, began  # type: ignore[method-assign]
        return self._found

    def __exit__(self, *_: object) -> None:
        from tidegate.driver.forecast import Forecast
        from tidegate.driver.observe import observed_of
        from tidegate.source.generator import Pace

        Forecast.committed, Pace.begin = self._restore  # type: ignore[method-assign]
        before_s = -math.inf
        for now, measured, latency, after_s in self._raw:
            (seen,) = observed_of(measured)
            # What is between two batches, as looking for input, is part of the first one where
            # the next did not wait for tuples.
            between_s = now - before_s - seen.seconds
            between_s = between_s if 0 <= between_s < BETWEEN_S else 0.0
            sample = replace(sample_of(seen), seconds=seen.seconds + between_s)
            self._found.append(
                Measured(
                    end_s=now - max(self._begun),
                    seconds=sample.seconds,
                    comparisons=measured[0].made,
                    latency_sum_s=latency[0],
                    tuples=latency[1],
                    after_s=after_s + between_s,
                    sample=sample,
                )
            )
            before_s = now


def spread(batches: list[Measured], amounts: Floats, edges: Floats) -> Floats:
    """Amounts of batches by second: each comes evenly between the start and the end of its own."""
    ends = np.array([b.end_s for b in batches])
    starts = ends - np.array([b.seconds for b in batches])
    times = np.maximum.accumulate(np.stack((starts, ends), axis=1).reshape(-1))
    total = np.repeat(np.concatenate(([0.0], np.cumsum(amounts))), 2)[1:-1]
    return np.diff(np.interp(edges, times, total, left=0.0))


def calibrated(batches: list[Measured], seconds: float, everywhere: bool = True) -> Calibration:
    """The costs from the batches of one part alone."""
    place = "ABCDE".index(CALIBRATED)
    low, high = (WARM_S + seconds / 5 * n for n in (place, place + 1))
    estimator = Estimator(everywhere)
    for batch in batches:
        if low <= batch.end_s < high:
            estimator = estimator.after(batch.sample)
    found = estimator.estimate()
    if found is None:
        raise SystemExit(f"part {CALIBRATED} has too few batches: take more --seconds.")
    return found


def compared(
    setup: Setup, trace: Trace, window: Window, batches: list[Measured], seconds: float
) -> dict[str, Any]:
    """Predicted and measured by second, and the errors of the parts that were not calibrated on."""
    known = calibrated(batches, seconds)
    predicted = predict(trace, window, known.costs(), instances=setup.instances, batch=Batching())
    edges = np.arange(WARM_S, WARM_S + seconds + 1e-9)
    per = round(1 / STEP_S)
    first = round(WARM_S / STEP_S)
    after_s = float(np.median([b.after_s for b in batches if b.end_s > WARM_S]))
    made = spread(batches, np.array([b.comparisons for b in batches]), edges)
    tuples = spread(batches, np.array([float(b.tuples) for b in batches]), edges)
    waited = spread(batches, np.array([b.latency_sum_s for b in batches]), edges)
    with np.errstate(invalid="ignore", divide="ignore"):
        latency = waited / tuples
    count = len(edges) - 1
    model = {
        name: np.nanmean(values[first : first + count * per].reshape(count, per), axis=1)
        for name, values in (
            ("throughput", predicted.throughput),
            ("latency", predicted.latency - after_s),
            ("latency_in", predicted.latency_in),
            ("latency_join", predicted.latency_join),
            ("latency_batch", predicted.latency_batch),
        )
    }
    parts = np.array(list("ABCDE"))[np.minimum((np.arange(count) * 5 / seconds).astype(int), 4)]
    errors = {}
    for name, real in (("throughput", made), ("latency", latency)):
        off = np.abs(model[name] - real) / real
        told = np.isfinite(off) & (parts != CALIBRATED)
        errors[name] = {
            "median": round(float(np.median(off[told])), 4),
            "p90": round(float(np.percentile(off[told], 90)), 4),
            "by_part": {
                part: round(float(np.median(off[np.isfinite(off) & (parts == part)])), 4)
                for part in "ABCDE"
            },
            "bar": BARS[name],
        }
    return {
        "title": setup.title,
        "errors": errors,
        "constants": known.as_dict(),
        "batches": len(batches),
        "batch_ms": round(float(np.median([b.seconds for b in batches])) * 1e3, 3),
        "after_commit_ms": round(after_s * 1e3, 3),
        "load_peak": setup.peak,
        "parts": "".join(parts),
        "measured": {"throughput": _list(made), "latency": _list(latency)},
        "predicted": {name: _list(values) for name, values in model.items()},
    }


def _list(values: Floats) -> list[float | None]:
    return [round(float(v), 6) if np.isfinite(v) else None for v in values]


def child(arguments: argparse.Namespace) -> None:
    """A pilot, which measures the costs, or the run of a set-up."""
    name, _, factor = arguments.child.partition("=")
    work, seconds = Path(arguments.work), arguments.seconds
    if name.startswith("pilot"):
        setup = Setup("pilot", instances=int(name.removeprefix("pilot")))
        trace = scaled(seconds, float(factor), 1)
        window = window_of(setup, seconds, float(factor))
        batches, _ = run(setup, trace, window, work, arguments.master)
        found = calibrated(batches, seconds)
        give({"comparison_s": found.comparison.value, "tuple_s": found.tuple_s.value})
        return
    setup = SETUPS[name]
    trace = scaled(seconds, float(factor), setup.sources)
    window = window_of(setup, seconds, float(factor))
    batches, _ = run(setup, trace, window, work, arguments.master)
    give({"factor": float(factor), **compared(setup, trace, window, batches, seconds)})


def plots(found: dict[str, Any]) -> None:
    """Two pictures: throughput and latency of all set-ups, as the paper's figures have them."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    for name, unit, scale in (
        ("throughput", "million comparisons/s", 1e-6),
        ("latency", "milliseconds", 1e3),
    ):
        rows = math.ceil(len(found) / 2)
        figure, axes = plt.subplots(rows, 2, figsize=(11, 2.4 * rows), squeeze=False)
        without_empty(axes, len(found))
        for axis, one in zip(axes.reshape(-1), found.values(), strict=False):
            for kind, colour in (("measured", "#888888"), ("predicted", "#0072b2")):
                values = np.array(one[kind][name], float) * scale
                axis.plot(values, color=colour, label=kind, lw=1.6 if kind == "measured" else 1.0)
            error = one["errors"][name]["median"]
            axis.set_title(f"{one['title']}: median error {error:.1%}", fontsize=9)
            axis.set_ylabel(unit, fontsize=8)
            axis.tick_params(labelsize=8)
            axis.set_ylim(bottom=0)
            for edge in np.flatnonzero(np.diff([ord(p) for p in one["parts"]])) + 1:
                axis.axvline(edge, color="#dddddd", lw=0.8, zorder=0)
        axes[0][0].legend(fontsize=8, frameon=False)
        for axis in axes[-1]:
            axis.set_xlabel("seconds", fontsize=8)
        figure.tight_layout()
        saved(figure, name)
    plot_terms(found)


def plot_terms(found: dict[str, Any]) -> None:
    """What latency is made of, as figure 15."""
    from matplotlib import pyplot as plt

    terms = {"in": "#0072b2", "join": "#009e73", "batch": "#d55e00"}
    rows = math.ceil(len(found) / 2)
    figure, axes = plt.subplots(rows, 2, figsize=(11, 2.4 * rows), squeeze=False)
    without_empty(axes, len(found))
    for axis, one in zip(axes.reshape(-1), found.values(), strict=False):
        for term, colour in terms.items():
            values = np.array(one["predicted"][f"latency_{term}"], float) * 1e3
            axis.semilogy(values, color=colour, label=term, lw=1.2)
        axis.set_title(one["title"], fontsize=9)
        axis.set_ylabel("milliseconds", fontsize=8)
        axis.tick_params(labelsize=8)
    axes[0][0].legend(fontsize=8, frameon=False)
    figure.tight_layout()
    saved(figure, "latency-terms")


def without_empty(axes: Any, used: int) -> None:
    """Hide the places that no set-up has."""
    for axis in axes.reshape(-1)[used:]:
        axis.set_visible(False)


def saved(figure: Any, name: str) -> None:
    target = DOCS / f"model-{name}.svg"
    figure.savefig(target)
    print(f"written to {target}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    common_arguments(parser, rounds=1)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of the five parts together")
    parser.add_argument("--setups", nargs="+", choices=SETUPS, default=list(SETUPS))
    parser.add_argument("--master", default=MASTER)
    parser.add_argument("--no-plot", action="store_true")
    parser.add_argument("--plot-only", action="store_true", help="draw the last results again")
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    if arguments.plot_only:
        plots(json.loads((RESULTS / "model_accuracy.json").read_text())["setups"])
        return
    shared = ["--seconds", str(arguments.seconds), "--master", arguments.master]
    costs: dict[int, dict[str, float]] = {}
    found: dict[str, Any] = {}
    for name in arguments.setups:
        setup = SETUPS[name]
        many = setup.instances
        if many not in costs:
            guess = {"comparison_s": 1.5e-8, "tuple_s": 2e-5}
            pilot = replace(setup, peak=PILOT, tuples=False)
            factor = factor_for(guess, pilot, arguments.seconds)
            costs[many] = in_child(__file__, "--child", f"pilot{many}={factor}", *shared)
            print(f"{many} instances: {costs[many]}", flush=True)
        factor = factor_for(costs[many], setup, arguments.seconds)
        found[name] = in_child(__file__, "--child", f"{name}={factor}", *shared)
        errors = {kind: of["median"] for kind, of in found[name]["errors"].items()}
        print(f"{name}: rates x {factor:.1f}, median errors {errors}", flush=True)
    met = {
        kind: float(np.median([one["errors"][kind]["median"] for one in found.values()]))
        for kind in BARS
    }
    write_report(
        "model_accuracy",
        {
            "seconds": arguments.seconds,
            "calibrated_on": f"part {CALIBRATED} of the run itself; errors are of the others",
            "pilot": costs,
            "median_errors": met,
            "bars": BARS,
            "setups": found,
        },
    )
    if not arguments.no_plot:
        plots(found)


if __name__ == "__main__":
    main()
