"""The performance model beside the engine: predicted and measured throughput and latency.

    python benchmarks/model_accuracy.py                            five runs of each set-up, two
                                                                   minutes a run
    python benchmarks/model_accuracy.py --beside 8                 on 16 cores, two for each run
    python benchmarks/model_accuracy.py --rounds 1 --seconds 20 --setups one-source --master none
    python benchmarks/model_accuracy.py --keep DIR                 and keep what every batch took
    python benchmarks/model_accuracy.py --from DIR                 compare anew what was kept

A scan join of two live streams with the rates of figure 7 of the model's paper (parts A to E),
shortened to `--seconds` with a window as many times shorter, and as many times higher as this
machine can bear: its peak is half of what the instances can do, or 1.3 times as much in the
set-ups with overload. What that is, a pilot run measures, in which rates rise until it has enough.

Nothing is estimated from what is judged. There are two predictions, both from rates alone:

before   the costs (alpha, beta, sigma, batch, tuple) are those of some seconds before part A, in
         which rates rise to the highest and fall; with them it predicts all five parts
running  what the query says of itself in status, summary and view: each second is predicted with
         the costs of the batches before it

Beside them is what one would guess without a model: that a second is like the one before. And two
that are no predictions, because they know what is judged; they say where an error comes from:

hindsight    with the costs of the very batches that are judged, the same for all of them: what is
             left is that the machine changes from second to second, and the equations
each_second  also with the slowdown of each second: what is left are the equations

Each run is a process of its own. As in the paper, what is compared are means of several runs, by
second; the errors of single runs stand beside them, and how far runs lie apart. Results go to
benchmarks/results/model_accuracy.json, pictures like the paper's figures 8 to 15 to
docs/model-*.svg (extra `tidegate[plot]`).
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measure import CORES, MASTER, RESULTS, beside, common_arguments, give, in_child, write_report
from model_pictures import plots
from model_run import BAND, STEP_S, Batch, Predicate, Ran, held, run, shared, spread

from tidegate.model.cost.calibration import Calibration
from tidegate.model.cost.estimator import Estimator
from tidegate.model.join.experiment import PART_S, section7
from tidegate.model.join.micro_batch import Batching
from tidegate.model.join.predict import predict
from tidegate.model.join.trace import Trace
from tidegate.model.operation import Floats, Lookback

SECONDS = 60.0
"""How long the experiment is made."""
HILLS = 2
WARM_S, RISE_S, CALM_S = 4.0, 20.0, 2.0
"""What goes before it: rates are low, rise and fall again twice, and are those of part A.

They do both so that what changes with time is not taken for what changes with the load, and twice
because the machine is not the same from one ten seconds to the next."""
BEGIN_S = WARM_S + RISE_S + CALM_S
WINDOW_S, TUPLES = 60.0, 8_400
"""The paper's windows, of its experiment of 25 minutes."""
HIGHEST = (250.0, 240.0)
"""The highest rates of the experiment, in part B."""
PEAK, OVERLOAD, PILOT, RISEN = 0.5, 1.3, 1.2, 0.9
"""Loads: of the two kinds of set-ups, of the pilot, and the most to which rates rise before."""
GUESS = {"comparison_s": 6e-9, "tuple_s": 1.5e-5}
KNOWING = ("hindsight", "each_second")
DRAWN = ("measured", "before", "running")
BARS = {"throughput": 0.02, "latency": 0.10}
PARTS = "ABCDE"
LEAST = 5
"""Fewer seconds say nothing."""


@dataclass(frozen=True)
class Setup:
    """One way to run the join."""

    title: str
    sources: int = 1
    instances: int = 1
    tuples: bool = False
    peak: float = PEAK
    rows: int | None = None
    """The most tuples of a batch; as many as a usual batch has at nine tenths of the load."""


SETUPS = {
    "one-source": Setup("one source a side"),
    "one-source-tuples": Setup("one source a side, windows of tuples", tuples=True),
    "overload": Setup("overload", peak=OVERLOAD),
    "overload-tuples": Setup("overload, windows of tuples", tuples=True, peak=OVERLOAD),
    "overload-rows": Setup("overload, batches of at most 4,000 tuples", peak=OVERLOAD, rows=4_000),
    "sources": Setup("three sources a side", sources=3),
    "sources-tuples": Setup("three sources a side, windows of tuples", sources=3, tuples=True),
    "instances": Setup("two instances, three sources a side", sources=3, instances=2),
    "instances-tuples": Setup(
        "two instances, three sources a side, windows of tuples", 3, instances=2, tuples=True
    ),
}


def trace_of(setup: Setup, seconds: float, factor: float, *, pilot: bool = False) -> Trace:
    """The rates of the experiment, shortened and raised, after what goes before it."""
    sides = []
    whole = section7().trace
    for of, highest in ((whole.r, HIGHEST[0]), (whole.s, HIGHEST[1])):
        steps = [round(s / STEP_S) for s in (WARM_S, RISE_S, CALM_S)]
        first = float(of[0, 0])
        before = [
            np.full(steps[0], 0.2 * first),
            hill(min(1.0, RISEN / setup.peak) if not pilot else 1.0, steps[1]) * highest,
            np.full(steps[2], first),
        ]
        parts = before[:2] if pilot else [*before, held(of[:, 0], seconds)]
        sides.append(np.concatenate(parts) * factor)
    return shared(sides[0], sides[1], setup.sources)


def hill(top: float, steps: int) -> Floats:
    """From a tenth up to the top and down again, each time."""
    edges = np.linspace(0, steps, 2 * HILLS + 1)
    return np.interp(np.arange(steps), edges, [0.1, *[top, 0.1] * HILLS])


def window_of(setup: Setup, seconds: float, factor: float) -> Lookback:
    shorter = 5 * PART_S / seconds
    if setup.tuples:
        return Lookback(rows=round(TUPLES / shorter * factor))
    return Lookback(seconds=round(WINDOW_S / shorter, 3))


def peak_of(costs: dict[str, float], setup: Setup, seconds: float) -> tuple[float, float]:
    """The load of the paper's highest rates, by comparisons and by tuples.

    With rates that are x times as high the first is x * x times as much, the second x times.
    """
    window_s, (r, s) = WINDOW_S * seconds / (5 * PART_S), HIGHEST
    kept = (140.0, 140.0) if setup.tuples else (r, s)
    pairs = (r * kept[1] + s * kept[0]) * window_s * costs["comparison_s"] / setup.instances
    return pairs, (r + s) * costs["tuple_s"]


def factor_for(costs: dict[str, float], setup: Setup, seconds: float) -> float:
    """How many times the paper's rates have the peak of part B at the load of a set-up."""
    pairs, moved = peak_of(costs, setup, seconds)
    return (math.sqrt(moved**2 + 4 * pairs * setup.peak) - moved) / (2 * pairs)


def calibrated(batches: list[Batch], until_s: float = BEGIN_S) -> Calibration:
    """The costs from the batches while rates rose."""
    estimator = Estimator(everywhere=True)
    for batch in batches:
        if WARM_S <= batch.end_s < until_s:
            estimator = estimator.after(batch.sample)
    found = estimator.estimate()
    if found is None:
        raise SystemExit("too few batches before the experiment: the machine is too busy.")
    return found


def in_hindsight(batches: list[Batch], seconds: float) -> Calibration:
    """The costs from the batches that are judged, all of which count the same."""
    samples = [b.sample for b in batches if BEGIN_S <= b.end_s < BEGIN_S + seconds]
    some = [s for s in samples if s.tuples > 0]
    found = Estimator(everywhere=True, batches=len(some), samples=tuple(some)).estimate()
    if found is None:
        raise SystemExit("too few batches in the experiment: the machine is too busy.")
    return found


def slowdowns(setup: Setup, batches: list[Batch], known: Calibration, steps: int) -> Floats:
    """How many times as long as by these costs the batches of each second took, for each step."""
    edges = np.arange(0, steps * STEP_S + 1e-9)
    due = [
        known.batch_s.value
        + known.tuple_s.value * b.sample.tuples
        + known.comparison.value * b.sample.comparisons / setup.instances
        for b in batches
    ]
    took = spread(batches, np.array([b.seconds for b in batches]), edges)
    expected = spread(batches, np.array(due), edges)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.where(expected > 0, took / expected, 1.0)
    places = np.minimum((np.arange(steps) * STEP_S).astype(int), len(found) - 1)
    return np.where(found[places] > 0, found[places], 1.0)


def compared(setup: Setup, ran: Ran, seconds: float, factor: float) -> dict[str, Any]:
    """Predicted and measured of one run, by second."""
    trace = trace_of(setup, seconds, factor)
    window = window_of(setup, seconds, factor)
    batches, known = ran.batches, calibrated(ran.batches)
    same = in_hindsight(batches, seconds)
    predicted, hindsight, each_second = (
        predict(
            trace,
            window,
            costs.costs(),
            instances=setup.instances,
            batch=Batching(rows=setup.rows),
            slowdown=slow,
        )
        for costs, slow in (
            (known, 1.0),
            (same, 1.0),
            (same, slowdowns(setup, batches, same, len(trace))),
        )
    )
    edges = np.arange(BEGIN_S, BEGIN_S + seconds + 1e-9)
    count, per, first = len(edges) - 1, round(1 / STEP_S), round(BEGIN_S / STEP_S)
    after_s = float(np.median([b.after_s for b in batches if WARM_S < b.end_s < BEGIN_S]))
    made = spread(batches, np.array([float(b.sample.comparisons) for b in batches]), edges)
    answered = spread(batches, np.array([float(b.answered) for b in batches]), edges)
    waited = spread(batches, np.array([b.latency_sum_s for b in batches]), edges)
    with np.errstate(invalid="ignore", divide="ignore"):
        latency = waited / answered

    def by_second(values: Floats) -> list[float | None]:
        steps = values[first : first + count * per].reshape(count, per)
        return _list(np.nanmean(steps, axis=1))

    def of_model(found: Any) -> dict[str, list[float | None]]:
        return {
            "throughput": by_second(found.throughput),
            "latency": by_second(found.latency - after_s),
        }

    costs = {"comparison_s": known.comparison.value, "tuple_s": known.tuple_s.value}
    pairs, moved = peak_of(costs, setup, seconds)
    load = pairs * factor**2 + moved * factor
    terms = {
        f"latency_{term}": by_second(getattr(predicted, f"latency_{term}"))
        for term in ("in", "join", "batch")
    }
    return {
        "series": {
            "measured": {"throughput": _list(made), "latency": _list(latency)},
            "before": of_model(predicted) | terms,
            **said(ran, count),
            "hindsight": of_model(hindsight),
            "each_second": of_model(each_second),
        },
        "constants": known.as_dict(),
        "batches": len(batches),
        "batch_ms": round(float(np.median([b.seconds for b in batches])) * 1e3, 3),
        "after_commit_ms": round(after_s * 1e3, 3),
        "load_peak": {"wanted": setup.peak, "by_costs": round(load, 3)},
    }


def said(ran: Ran, count: int) -> dict[str, dict[str, list[float | None]]]:
    """What the query said of each second while it ran, and what it measured by its own account."""
    found = np.full((count, 4), np.nan)
    for of in ran.forecasts:
        second = math.ceil(of.end_s - BEGIN_S) - 1
        if 0 <= second < count:
            found[second] = of.throughput, of.measured, of.latency_s, of.measured_s
    columns = [_list(column) for column in found.T]
    return {
        "running": {"throughput": columns[0], "latency": columns[2]},
        "measured_running": {"throughput": columns[1], "latency": columns[3]},
    }


def judged(setup: Setup, rounds: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """The errors of the means of some runs, as the paper has them, and of each by itself.

    `spread` is how far a second of one run lies from its mean over the runs, in the median: what
    the machine does by itself.
    """
    means: dict[str, dict[str, Floats]] = {
        kind: {
            name: _mean([one["series"][kind][name] for one in rounds])
            for name in rounds[0]["series"][kind]
        }
        for kind in rounds[0]["series"]
    }
    alone = [errors_of(_arrays(one["series"]), seconds) for one in rounds]
    whole = errors_of(means, seconds)
    count = len(means["measured"]["latency"])
    return {
        "title": setup.title,
        "rounds": len(rounds),
        **whole,
        "of_single_runs": {
            kind: {
                name: round(float(np.median([one[kind][name]["median"] for one in alone])), 4)
                for name in BARS
            }
            for kind in whole
        },
        "spread": {
            name: _spread([one["series"]["measured"][name] for one in rounds]) for name in BARS
        },
        "parts": "".join(parts_of(np.arange(count), seconds)),
        "series": {
            kind: {name: _list(values) for name, values in means[kind].items()} for kind in DRAWN
        },
        "runs": [{k: v for k, v in one.items() if k != "series"} for one in rounds],
    }


def errors_of(series: dict[str, dict[str, Floats]], seconds: float) -> dict[str, Any]:
    """Of each kind of prediction, and of that which takes a second for the one before."""
    parts = parts_of(np.arange(len(series["measured"]["latency"])), seconds)
    found: dict[str, Any] = {
        kind: {
            name: errors(
                series[kind][name],
                series["measured_running" if kind == "running" else "measured"][name],
                parts,
            )
            for name in BARS
        }
        for kind in ("before", "running", *KNOWING)
    }
    found["as_before"] = {
        name: errors(series["measured"][name][:-1], series["measured"][name][1:], parts[1:])
        for name in BARS
    }
    return found


def _arrays(series: dict[str, Any]) -> dict[str, dict[str, Floats]]:
    return {
        kind: {name: np.array(values, float) for name, values in of.items()}
        for kind, of in series.items()
    }


def _mean(runs: list[list[float | None]]) -> Floats:
    """By second, over the runs that know it."""
    values = np.array(runs, float)
    known = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0)
    return mean


def _spread(runs: list[list[float | None]]) -> float | None:
    if len(runs) < 2:
        return None
    off = np.abs(np.array(runs, float) / _mean(runs) - 1)
    return round(float(np.nanmedian(off)), 4)


def parts_of(at_s: Floats, seconds: float) -> Any:
    """The parts that seconds after the beginning are in."""
    return np.array(list(PARTS))[np.minimum((at_s * 5 / seconds).astype(int), 4)]


def errors(said: Floats, real: Floats, parts: Any) -> dict[str, Any]:
    """Absolute errors as shares of what was measured: of seconds, by part, and of five seconds."""
    with np.errstate(invalid="ignore", divide="ignore"):
        off = np.abs(said - real) / real
    told = np.isfinite(off)
    if told.sum() < LEAST:
        raise SystemExit(f"only {told.sum()} seconds can be judged: the machine is too busy.")
    fives = np.flatnonzero(told)[: told.sum() // 5 * 5].reshape(-1, 5)
    longer = np.abs(said[fives].mean(axis=1) / real[fives].mean(axis=1) - 1)
    return {
        "median": round(float(np.median(off[told])), 4),
        "p90": round(float(np.percentile(off[told], 90)), 4),
        "bias": round(float(np.median(said[told] / real[told])) - 1, 4),
        "of_five_seconds": round(float(np.median(longer)), 4),
        "by_part": {
            part: round(float(np.median(off[told & (parts == part)])), 4)
            for part in PARTS
            if (told & (parts == part)).any()
        },
    }


def _list(values: Floats) -> list[float | None]:
    return [float(f"{v:.6g}") if np.isfinite(v) else None for v in values]


def child(arguments: argparse.Namespace) -> None:
    """A pilot, which measures the costs, or the run of a set-up."""
    name, text, number = arguments.child.split("=")
    work, seconds, factor = Path(arguments.work), arguments.seconds, float(text)
    if name.startswith("pilot"):
        setup = pilot_of(int(name.removeprefix("pilot")))
        give(piloted(setup, seconds, factor, work, arguments.master))
        return
    setup = SETUPS[name]
    trace, window = trace_of(setup, seconds, factor), window_of(setup, seconds, factor)
    kept = Path(arguments.again) / f"{name}-{number}.json" if arguments.again else None
    if kept is not None:
        ran = Ran.kept(kept)
    else:
        many, rows = setup.instances, setup.rows
        ran = run(trace, window, work, arguments.master, instances=many, batch_rows=rows)
    if arguments.keep:
        ran.keep(Path(arguments.keep) / f"{name}-{number}.json")
    give(compared(setup, ran, seconds, factor))


def pilot_of(instances: int) -> Setup:
    return Setup("pilot", instances=instances, peak=PILOT)


def piloted(
    setup: Setup,
    seconds: float,
    factor: float,
    work: Path,
    master: str,
    predicate: Predicate = BAND,
) -> dict[str, float]:
    """The costs with so many instances, where rates rise until they have enough to do.

    `comparison_s` is what an instance takes for one, and as many times the driver's part of its
    results as there are instances: the driver's part is not divided among them.
    """
    trace, window = trace_of(setup, seconds, factor, pilot=True), window_of(setup, seconds, factor)
    ran = run(trace, window, work, master, instances=setup.instances, predicate=predicate)
    found = calibrated(ran.batches, math.inf)
    return {"comparison_s": found.comparison.value, "tuple_s": found.tuple_s.value}


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """All set-ups in all rounds, each run in a process of its own, some of them beside others."""
    options = ["--seconds", str(arguments.seconds), "--master", arguments.master]
    options += ["--keep", arguments.keep] if arguments.keep else []
    options += ["--from", arguments.again] if arguments.again else []
    file = Path(arguments.again or arguments.keep or arguments.work or ".") / "factors.json"
    factors: dict[str, float] = json.loads(file.read_text()) if arguments.again else {}
    costs: dict[int, dict[str, float]] = {}
    # Pilots have as many cores as a run has.
    alone = sorted(os.sched_getaffinity(0))[:CORES] if arguments.beside > 1 else None
    for name in arguments.setups:
        setup, many = SETUPS[name], SETUPS[name].instances
        if name not in factors:
            if many not in costs:
                factor = factor_for(GUESS, pilot_of(many), arguments.seconds)
                pilot = ("--child", f"pilot{many}={factor}=0", *options)
                costs[many] = in_child(__file__, *pilot, cpus=alone)
                print(f"{many} instances: {costs[many]}", flush=True)
            factors[name] = factor_for(costs[many], setup, arguments.seconds)
            if arguments.keep:
                file.write_text(json.dumps(factors))

    def one(run: str, cpus: Sequence[int] | None) -> dict[str, Any]:
        name, number = run.split("=")
        child = f"{name}={factors[name]}={number}"
        found: dict[str, Any] = in_child(__file__, "--child", child, *options, cpus=cpus)
        errors = errors_of(_arrays(found["series"]), arguments.seconds)
        print(f"{name}, round {number}: {told(errors)}", flush=True)
        return found

    runs = [f"{name}={number}" for number in range(arguments.rounds) for name in arguments.setups]
    given = dict(zip(runs, beside(arguments.beside, one, runs), strict=True))
    found = {}
    for name in arguments.setups:
        rounds = [given[f"{name}={number}"] for number in range(arguments.rounds)]
        found[name] = {
            "factor": factors[name],
            **judged(SETUPS[name], rounds, arguments.seconds),
        }
        print(f"{name}, the mean of {len(rounds)}: {told(found[name])}", flush=True)
    return {"pilot": costs, "beside": arguments.beside, "setups": found}


def told(one: dict[str, Any]) -> str:
    """The median errors of a set-up."""
    kinds = (
        ("before", "costs from before"),
        ("running", "running"),
        ("as_before", "no model"),
        ("hindsight", "its own costs"),
        ("each_second", "and slowdowns"),
    )
    parts = [
        f"{title}: latency {one[kind]['latency']['median']:.1%}, "
        f"throughput {one[kind]['throughput']['median']:.1%}"
        for kind, title in kinds
    ]
    return "; ".join(parts)


def table(setups: dict[str, Any]) -> Iterator[str]:
    """Median errors of a second as the docs have them."""
    yield (
        "| set-up | throughput, costs from before | running | latency, costs from before | running "
        "| as the second before | its own costs | and slowdowns | one run from the mean |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for one in setups.values():
        cells = [
            *(one[kind]["throughput"]["median"] for kind in ("before", "running")),
            *(one[kind]["latency"]["median"] for kind in ("before", "running", "as_before")),
            *(one[kind]["latency"]["median"] for kind in KNOWING),
            one["spread"]["latency"],
        ]
        texts = ["-" if cell is None else f"{cell:.1%}" for cell in cells]
        yield f"| {one['title']} | " + " | ".join(texts) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    common_arguments(parser, rounds=5)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of the five parts together")
    parser.add_argument(
        "--beside", type=int, default=1, help="how many run at once, each on cores of its own"
    )
    parser.add_argument("--setups", nargs="+", choices=SETUPS, default=list(SETUPS))
    parser.add_argument("--master", default=MASTER)
    parser.add_argument("--keep", metavar="DIR", help="write what every batch took")
    parser.add_argument("--from", dest="again", metavar="DIR", help="compare what was kept")
    parser.add_argument("--no-plot", action="store_true")
    parser.add_argument("--plot-only", action="store_true", help="draw the last results again")
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    if arguments.plot_only:
        plots(json.loads((RESULTS / "model_accuracy.json").read_text())["setups"])
        return
    if arguments.keep:
        Path(arguments.keep).mkdir(parents=True, exist_ok=True)
    found = measured(arguments)
    medians = {
        kind: {
            name: float(np.median([one[kind][name]["median"] for one in found["setups"].values()]))
            for name in BARS
        }
        for kind in ("before", "running", "as_before", *KNOWING)
    }
    write_report(
        "model_accuracy",
        {"seconds": arguments.seconds, "bars": BARS, "median_errors": medians, **found},
    )
    if not arguments.no_plot:
        plots(found["setups"])


if __name__ == "__main__":
    main()
