"""The pictures of `model_accuracy.py`, like figures 8 to 15 of the model's paper."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from measure import PICTURES

MEASURED, BEFORE, RUNNING = "#888888", "#0072b2", "#d55e00"


def plots(found: dict[str, Any]) -> None:
    """Throughput and latency of all set-ups, and what latency is made of."""
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
            middle = np.arange(len(one["parts"])) + 0.5
            real, before, said = (
                np.array(one["series"][kind][name], float)
                for kind in ("measured", "before", "running")
            )
            axis.plot(middle, real * scale, color=MEASURED, label="measured", lw=1.8)
            axis.plot(middle, before * scale, color=BEFORE, label="costs from before", lw=1.0)
            axis.plot(middle, said * scale, color=RUNNING, label="running", lw=1.0)
            off = [one[kind][name]["median"] for kind in ("before", "running")]
            axis.set_title(
                f"{one['title']}: median error {off[0]:.1%}, running {off[1]:.1%}", fontsize=9
            )
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
            values = np.array(one["series"]["before"][f"latency_{term}"], float) * 1e3
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
    target = PICTURES / f"model-{name}.svg"
    figure.savefig(target)
    print(f"written to {target}")
