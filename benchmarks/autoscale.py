"""Scaling by prediction and by thresholds, over the loads of section 8 and over trades; simulated.

    python benchmarks/autoscale.py
    python benchmarks/autoscale.py --seconds 600    only the beginning of each load

No query runs, and no clock is read: the model says what 36 instances at most would do, with windows
of 60 seconds and a comparison of 13 nanoseconds, so that the highest rate needs 32 of them. All
decide once a second about the next one, and a switch costs nothing.

- algorithm 1: the paper's controller as it stands (upper and lower quota 0.8 and 0.7)
- looking ahead: the same, looking a window ahead
- policy model: what running queries have, looking a window ahead too; it has to find out the costs
- threshold: the policy `threshold` with its defaults, which sees how busy instances are

Results go to benchmarks/results/autoscale.json, plots to docs/autoscale-*.png.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from measure import PICTURES, write_report

from tidegate.elastic.by_model import ByModel
from tidegate.elastic.dry_run import BUCKETS, simulated
from tidegate.elastic.threshold import Threshold
from tidegate.model.control.controller import Limits, bounds
from tidegate.model.control.saso import saso
from tidegate.model.cost.calibration import JoinCosts
from tidegate.model.join.experiment import EXPERIMENTS, Experiment
from tidegate.model.join.predict import Prediction
from tidegate.model.join.simulation import JoinModel, scaled, timeline, wanted
from tidegate.model.operation import Lookback
from tidegate.testing import drive_join

WINDOW_S = 60.0
JOIN = JoinModel(
    window=Lookback(seconds=WINDOW_S), costs=JoinCosts(alpha=1.2e-8, beta=1e-7, sigma=0.01)
)
LIMITS = Limits(maximum=36)
LOADS = [name for name in EXPERIMENTS if name != "section7"]
DRAWN = {"section8-2": "autoscale-phases", "trades": "autoscale-trades"}
COLOURS = {
    "algorithm 1": "#009e73",
    "looking ahead": "#0072b2",
    "policy model": "#cc79a7",
    "threshold": "#d55e00",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=int, help="of each load; all of it unless given")
    seconds = parser.parse_args().seconds
    content: dict[str, Any] = {
        "simulated": {
            "window_s": WINDOW_S,
            "comparison_s": JOIN.costs.comparison_s,
            "upper_quota": LIMITS.upper,
            "lower_quota": LIMITS.lower,
            "ahead_s": WINDOW_S,
            "maximum": LIMITS.maximum,
            "decision_s": 1.0,
            "switch_s": 0.0,
        }
    }
    for name in LOADS:
        experiment = begun(EXPERIMENTS[name](), seconds)
        runs = {
            policy: JOIN.prediction(experiment.trace, instances)
            for policy, instances in decided(experiment).items()
        }
        content[name] = {policy: judged(experiment, run) for policy, run in runs.items()}
        for policy, found in content[name].items():
            print(f"{name:<12}{policy:<15}{found}")
        if name in DRAWN:
            draw(DRAWN[name], experiment, runs)
    write_report("autoscale", content)


def begun(experiment: Experiment, seconds: int | None) -> Experiment:
    """The first so many seconds of an experiment, or all of it."""
    if seconds is None:
        return experiment
    of = experiment.trace
    trace = replace(of, times=of.times[:seconds], r=of.r[:seconds], s=of.s[:seconds])
    return Experiment(trace, tuple(p for p in experiment.parts if p.start_s < seconds))


def decided(experiment: Experiment) -> dict[str, npt.NDArray[np.int64]]:
    """The instances of each second, by each of the four."""
    trace = experiment.trace
    by_model = drive_join(
        ByModel(maximum=LIMITS.maximum, ahead=WINDOW_S),
        zip(trace.r[:, 0].tolist(), trace.s[:, 0].tolist(), strict=True),
        window=JOIN.window,
        costs=JOIN.costs,
        buckets=BUCKETS,
    )
    return {
        "algorithm 1": scaled(JOIN, trace, LIMITS, first=1),
        "looking ahead": scaled(JOIN, trace, LIMITS, first=1, ahead_s=WINDOW_S),
        "policy model": np.array([one.instances for one in by_model]),
        "threshold": simulated(Threshold(maximum=LIMITS.maximum), JOIN, trace, first=1),
    }


def judged(experiment: Experiment, run: Prediction) -> dict[str, Any]:
    starts = [float(part.start_s) for part in experiment.parts]
    found = saso(timeline(JOIN, experiment.trace, run, LIMITS, starts)).as_dict()
    left = np.cumsum(run.comparisons - run.throughput)
    late = left > 1e-9 * run.comparisons.sum()
    owed_s = left * JOIN.costs.comparison_s / run.instances
    rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in found.items()}
    return {
        **rounded,
        "seconds_with_work_left": int(late.sum()),
        "longest_row_of_them": longest_row(late),
        "most_work_left_s": round(float(owed_s[late].max(initial=0.0)), 3),
        "instance_seconds": int(run.instances.sum()),
        "most_instances": int(run.instances.max()),
    }


def table(report: dict[str, Any]) -> Iterator[str]:
    """All loads as the docs have them; each cell has the four in the order of the report."""
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "switches": lambda one: f"{one['switches']}",
        "settling time, s": lambda one: whole(one["settling_s"]),
        "overshoot once settled": lambda one: whole(one["overshoot"]),
        "seconds with work left over, longest row": lambda one: (
            f"{one['seconds_with_work_left']} ({one['longest_row_of_them']})"
        ),
        "mean latency, ms": lambda one: f"{one['latency_mean_s'] * 1e3:.1f}",
        "seconds of instances": lambda one: f"{one['instance_seconds']:,}",
    }
    yield f"| load | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 1) + "|"
    for name in LOADS:
        cells = (" / ".join(map(text, report[name].values())) for text in columns.values())
        yield f"| `{name}` | {' | '.join(cells)} |"


def whole(number: float | None) -> str:
    """A dash where there was nothing to see."""
    return "-" if number is None else f"{number:.0f}"


def longest_row(late: npt.NDArray[np.bool_]) -> int:
    longest = row = 0
    for one in late:
        row = row + 1 if one else 0
        longest = max(longest, row)
    return longest


def draw(name: str, experiment: Experiment, runs: dict[str, Prediction]) -> None:
    """Rates, instances and latency of all but the policy, which hides one of them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8.5), layout="constrained")
    FigureCanvasAgg(figure)
    rate, instances, latency = figure.subplots(3, 1, sharex=True, height_ratios=(2, 4, 4))
    trace = experiment.trace
    rate.plot(trace.times, (trace.r + trace.s).sum(axis=1), color="#222222", linewidth=1)
    rate.set_ylabel("tuples/s")
    needed = wanted(JOIN, trace, bounds(JOIN.costs.comparison_s, LIMITS))
    instances.fill_between(trace.times, needed, step="post", color="#dddddd", label="needed")
    for policy, run in runs.items():
        if policy == "policy model":
            continue
        style: dict[str, Any] = {"color": COLOURS[policy], "label": policy, "linewidth": 1.1}
        instances.step(trace.times, run.instances, where="post", **style)
        latency.plot(trace.times, run.latency * 1e3, **style)
    instances.set_ylabel("instances")
    latency.set_ylabel("latency, ms")
    latency.set_yscale("log")
    latency.yaxis.set_major_formatter("{x:g}")
    latency.set_xlabel("seconds (simulated)")
    instances.set_ylim(top=LIMITS.maximum * 1.2)
    instances.legend(loc="upper right", fontsize=8, ncols=4)
    for axes in (rate, instances, latency):
        axes.set_ylim(bottom=None if axes is latency else 0)
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.margins(x=0.01)
        axes.spines[["top", "right"]].set_visible(False)
    path = PICTURES / f"{name}.png"
    figure.savefig(path, dpi=90)
    print(f"written to {path}")


if __name__ == "__main__":
    main()
