"""The figures of docs/measured/partitioning.md, from the reports of `partitioners.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from measure import PICTURES
from partition_tables import middle_of

COLOURS = {
    "hash": "#999999",
    "shuffle": "#e69f00",
    "pk": "#d55e00",
    "cm": "#cc79a7",
    "am": "#56b4e9",
    "cam": "#0072b2",
    "cam?d=5": "#004166",
    "lm": "#009e73",
    "auto": "#000000",
}
"""Colours that colour-blind people tell apart."""
MARKS = {"hash": "s", "shuffle": "D", "pk": "^", "cm": "v", "am": "<", "cam": "o", "lm": ">"}
BARS = ("hash", "shuffle", "pk", "am", "cam", "auto")
TITLES = {
    "tuples": "COUNT and AVG, tuples routed",
    "costly": "an aggregate of one's own, tuples routed",
    "partials": "COUNT and AVG, folded in map tasks, partials routed",
}
LINED = ("taxi, 62,500 routes", "cluster, 4 classes", "taxi, one route with 60%")

Report = Mapping[str, Any]


def draw(report: Report) -> None:
    """Where the tuples go, and what the paths are."""
    _balance(report["balance"])
    _paths(report["paths"])
    _scaling(report["paths"])


def draw_spark(report: Report) -> None:
    """What was measured on Spark."""
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    replays, live = figure.subplots(1, 2, width_ratios=(4, 1))
    found = report["replayed"]
    names = list(next(iter(found.values())))
    _bars(replays, list(found), names, {c: {n: found[c][n] for n in names} for c in found})
    replays.set_ylabel("milliseconds of a window")
    replays.set_title("replayed, a window a batch", fontsize=9)
    replays.legend(fontsize=8, frameon=False, ncols=len(names))
    skew = report["skew"]["latency_ms"]
    _bars(live, [""], list(skew), {"": skew})
    live.set_title("live, one key with 60%, costly", fontsize=9)
    _save(figure, "latency")


def _bars(axes: Any, groups: list[str], names: list[str], found: Mapping[str, Any]) -> None:
    """Medians side by side, with how far the rounds lie apart."""
    width = 0.8 / len(names)
    for place, name in enumerate(names):
        of = [found[group][name] for group in groups]
        middle = np.array([one["median"] for one in of])
        apart = [middle - [one["low"] for one in of], [one["high"] for one in of] - middle]
        at = np.arange(len(groups)) + (place - (len(names) - 1) / 2) * width
        axes.bar(at, middle, width, color=COLOURS[name], label=name)
        axes.errorbar(at, middle, apart, fmt="none", ecolor="#333333", linewidth=0.8)
    _streams(axes, groups)


def _balance(found: Mapping[str, Any]) -> None:
    """Figure 10 of the dissertation, measured: imbalance across, aggregation cost upwards."""
    columns = 4
    rows = -(-len(found) // columns)
    figure = Figure(figsize=(11, 2.7 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for axes, (case, by_count) in zip(panels, found.items(), strict=False):
        of = by_count[min(by_count, key=int)]
        for name, mark in MARKS.items():
            at = of[name]["tuple_imbalance"] * 100, of[name]["aggregation_cost"]
            axes.plot(*at, mark, color=COLOURS[name], markersize=7, alpha=0.8, label=name)
        axes.set_title(case, fontsize=9)
        axes.set_ylim(bottom=0.9)
        widest = max(10.0, *(of[name]["tuple_imbalance"] * 100 for name in MARKS))
        axes.set_xlim(-0.08 * widest, 1.08 * widest)
        _plain(axes)
    for axes in panels[len(found) :]:
        axes.set_visible(False)
    panels[0].legend(fontsize=7, frameon=False)
    figure.supxlabel("imbalance of tuples, percent", fontsize=9)
    figure.supylabel("parts to merge for each group", fontsize=9)
    _save(figure, "balance")


def _paths(found: Mapping[str, Any]) -> None:
    """Paths as multiples of that of hash: evaluating below, merging above."""
    figure = Figure(figsize=(11, 8.5), layout="constrained")
    for axes, (work, title) in zip(figure.subplots(3, 1), TITLES.items(), strict=True):
        cases, count = list(found), middle_of(found[next(iter(found))])
        of = [found[case][count][work] for case in cases]
        names = [name for name in BARS if name in of[0]]
        width = 0.8 / len(names)
        for place, name in enumerate(names):
            whole = np.array([one["hash"]["path_s"] for one in of])
            evaluate = np.array([one[name]["evaluate_s"] for one in of]) / whole
            merge = np.array([one[name]["merge_s"] for one in of]) / whole
            at = np.arange(len(cases)) + (place - (len(names) - 1) / 2) * width
            axes.bar(at, evaluate, width, color=COLOURS[name], label=name)
            axes.bar(at, merge, width, bottom=evaluate, color=COLOURS[name], alpha=0.45)
        axes.axhline(1.0, color="#333333", linewidth=0.7, linestyle=":")
        axes.set_title(f"{title}, {count} instances; pale: merging", fontsize=9)
        axes.set_ylabel("path, of that of hash", fontsize=8)
        _streams(axes, cases)
    figure.axes[0].legend(fontsize=8, frameon=False, ncols=len(BARS))
    _save(figure, "path")


def _scaling(found: Mapping[str, Any]) -> None:
    """Paths over instances, of some streams."""
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    cases = [case for case in LINED if case in found] or list(found)[:3]
    panels = figure.subplots(len(cases), 3, squeeze=False)
    for row, case in zip(panels, cases, strict=True):
        for axes, (work, title) in zip(row, TITLES.items(), strict=True):
            counts = list(found[case])
            for name in [n for n in BARS if n in found[case][counts[0]][work]]:
                ms = [found[case][count][work][name]["path_s"] * 1e3 for count in counts]
                style = {"linestyle": "--"} if name == "auto" else {}
                axes.plot(
                    counts, ms, marker="o", markersize=3, color=COLOURS[name], label=name, **style
                )
            axes.set_title(f"{case}\n{title}", fontsize=7)
            axes.set_ylim(bottom=0)
            _plain(axes)
    panels[0][0].legend(fontsize=7, frameon=False)
    figure.supxlabel("instances (simulated)", fontsize=9)
    figure.supylabel("milliseconds of a window", fontsize=9)
    _save(figure, "scaling")


def _streams(axes: Any, names: list[str]) -> None:
    axes.set_xticks(np.arange(len(names)), [name.replace(", ", ",\n") for name in names])
    _plain(axes)


def _plain(axes: Any) -> None:
    axes.tick_params(labelsize=7)
    axes.grid(axis="y", alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _save(figure: Figure, name: str) -> None:
    """The same numbers make the same bytes."""
    path = PICTURES / f"partitioning-{name}.svg"
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        FigureCanvasSVG(figure).print_svg(str(path), metadata={"Date": None})
    print(f"written to {path}")
