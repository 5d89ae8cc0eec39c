"""Plots a simulated join: rates, throughput, latency with its terms, instances.

matplotlib is not a dependency of the package but of its extra `plot`. It is imported only here,
when a plot is requested.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.cli.text.simulation import headline
from tidegate.errors import OptionError
from tidegate.model.control.controller import bounds
from tidegate.model.join.predict import Prediction
from tidegate.model.join.simulation import wanted
from tidegate.model.operation import Floats

if TYPE_CHECKING:
    from tidegate.cli.command.simulate import SimulationRequest

COLOURS = {
    "R": "#0072b2",
    "S": "#d55e00",
    "total": "#222222",
    "in": "#0072b2",
    "join": "#009e73",
    "out": "#cc79a7",
    "batch": "#e69f00",
}
"""Colours that people with colour blindness can tell apart (Okabe and Ito)."""

_WANTED: dict[str, Any] = {"color": "#d55e00", "linewidth": 1, "linestyle": "--"}
"""The style of target values, which are drawn beside actual ones."""

_WIDE = 30.0
"""Latencies that differ by more than this factor get a logarithmic scale."""


def check(option: str, name: str) -> None:
    """Raises for a file whose extension is no picture format, or if matplotlib is missing."""
    canvas = _matplotlib(option)[1]
    known = canvas.get_supported_filetypes()
    ending = Path(name).suffix.removeprefix(".").lower()
    if ending not in known:
        raise OptionError(
            option,
            "the extension of the file must be that of an image format",
            f"{name}",
            f"There are: {', '.join(sorted(known))}.",
        )


def drawn(name: str, asked: SimulationRequest, predicted: Prediction) -> bytes:
    """The bytes of a picture, in the format of the name's extension."""
    figure_of, canvas_of = _matplotlib("--plot")
    figure = figure_of(figsize=(11, 9.5), layout="constrained")
    canvas_of(figure)
    rates, throughput, latency, instances = figure.subplots(
        4, 1, sharex=True, height_ratios=(2, 3, 4, 2)
    )
    figure.suptitle(headline(asked), fontsize=10)
    _draw_rates(rates, asked)
    _draw_throughput(throughput, asked, predicted)
    _draw_latency(latency, predicted)
    _draw_instances(instances, asked, predicted)
    for axes in (rates, throughput, latency, instances):
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.margins(x=0.01)
        _mark_parts(axes, asked, named=axes is rates)
        axes.spines[["top", "right"]].set_visible(False)
    instances.set_xlabel("seconds")
    figure.align_ylabels()
    picture = io.BytesIO()
    ending = Path(name).suffix.removeprefix(".").lower()
    figure.savefig(picture, format=ending, dpi=110)
    return picture.getvalue()


def _matplotlib(option: str) -> tuple[Any, Any]:
    """Matplotlib's classes of figures and canvases; without pyplot, which needs a display."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise OptionError(
            option,
            "matplotlib must be installed",
            "no such module",
            "Run `pip install matplotlib`; it comes with the extra tidegate[plot].",
        ) from None
    return Figure, FigureCanvasAgg


def _draw_rates(axes: Any, asked: SimulationRequest) -> None:
    trace = asked.experiment.trace
    for name, rates, line in (("R", trace.r, "-"), ("S", trace.s, "--")):
        sources = f", {rates.shape[1]} sources" if rates.shape[1] > 1 else ""
        style = {"color": COLOURS[name], "linewidth": 1.2, "linestyle": line}
        axes.plot(trace.times, rates.sum(axis=1), label=name + sources, **style)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("tuples/s")
    axes.legend(loc="lower right", fontsize=8, ncols=2)


def _draw_throughput(axes: Any, asked: SimulationRequest, predicted: Prediction) -> None:
    step_s, times, millions = asked.experiment.trace.step_s, predicted.times, 1e6
    if asked.scaling is not None:
        table = bounds(asked.join.costs.comparison_s, asked.scaling.limits)
        free = asked.join.free_s(asked.experiment.trace) / step_s
        low, high = (of[predicted.instances] * free / millions for of in (table.lower, table.upper))
        style = {"step": "post", "color": "#0072b2", "alpha": 0.13, "linewidth": 0}
        axes.fill_between(times, low, high, label="between the lower and the upper quota", **style)
    arriving = predicted.comparisons / step_s
    if not np.allclose(arriving, predicted.throughput, rtol=1e-3):
        axes.plot(times, arriving / millions, label="that arrive", **_WANTED)
    made = {"color": COLOURS["total"], "linewidth": 1.2, "label": "that are made"}
    axes.plot(times, predicted.throughput / millions, **made)
    axes.set_ylim(bottom=0, top=max(axes.get_ylim()[1] * 1.15, 1e-9))
    axes.set_ylabel("million comparisons/s")
    axes.legend(loc="upper right", fontsize=8, ncols=3)


def _draw_latency(axes: Any, predicted: Prediction) -> None:
    shown = {name: values * 1e3 for name, values in predicted.terms.items()}
    total = predicted.latency * 1e3
    if len(shown) > 1:
        for name, values in shown.items():
            axes.plot(predicted.times, values, color=COLOURS[name], label=name, linewidth=1)
    axes.plot(predicted.times, total, color=COLOURS["total"], label="latency", linewidth=1.5)
    if _is_wide(total, *shown.values()):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    else:
        axes.set_ylim(bottom=0)
    axes.set_ylabel("latency, ms")
    axes.legend(loc="upper right", fontsize=8, ncols=len(shown) + 1)


def _is_wide(*rows: Floats) -> bool:
    """Whether values differ so much that a linear scale would hide the small ones."""
    known = np.concatenate([row[np.isfinite(row) & (row > 0)] for row in rows])
    return bool(len(known)) and float(np.max(known) / np.quantile(known, 0.01)) > _WIDE


def _draw_instances(axes: Any, asked: SimulationRequest, predicted: Prediction) -> None:
    times, there = predicted.times, {"color": COLOURS["total"], "linewidth": 1.4}
    if asked.scaling is not None:
        table = bounds(asked.join.costs.comparison_s, asked.scaling.limits)
        needed = wanted(asked.join, asked.experiment.trace, table)
        axes.step(times, needed, where="post", label="needed", **_WANTED)
    axes.step(times, predicted.instances, where="post", label="there", **there)
    axes.set_ylim(bottom=0, top=max(float(predicted.instances.max()) * 1.3, 1.5))
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel("instances")
    if asked.scaling is not None:
        axes.legend(loc="upper right", fontsize=8, ncols=2)


def _mark_parts(axes: Any, asked: SimulationRequest, *, named: bool) -> None:
    times = asked.experiment.trace.times
    for part in asked.experiment.parts:
        if part.start_s:
            axes.axvline(times[part.start_s], color="#888888", linewidth=0.8, linestyle=":")
        if named:
            middle = times[(part.start_s + part.end_s) // 2]
            place = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
            axes.annotate(f"part {part.name}", (middle, 1.0), fontsize=9, color="#555555", **place)
