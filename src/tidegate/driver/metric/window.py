"""Exports how good the answers of the newest windows are: error bounds, and what was left out.

These are figures of windows, not of batches: `driver.window_log` has them, and no report does.
"""

from __future__ import annotations

from collections.abc import Callable

from tidegate.driver.metric.family import MetricFamily, RunView, Samples, by, gauge

METRICS = ()


def _of_windows(
    name: str, help_: str, figure: str, of: Callable[[float], float] = lambda value: value
) -> MetricFamily:
    """A figure of the newest window of each subquery that has told of it."""

    def read(view: RunView) -> Samples:
        digests = view.summary.windows().items()
        told = ((subquery, digest.figures.get(figure)) for subquery, digest in digests)
        return by("subquery", ((s, of(values["last"])) for s, values in told if values))

    return gauge(name, help_, read, ["subquery"])


FAMILIES = (
    _of_windows(
        "error_ratio",
        "Error of the newest window as a share of the answer: with WITH ERROR the widest bound of "
        "its rows, with WITH SHED the expected error.",
        "error",
    ),
    _of_windows(
        "shed_ratio",
        "Share of the tuples of the newest window that WITH SHED BY CONCEPT has dropped.",
        "kept",
        lambda kept: 1.0 - kept,
    ),
    _of_windows(
        "trimmed_ratio",
        "Share of the tuples of the newest window that WITH BALANCE has left out.",
        "trimmed",
    ),
    _of_windows(
        "sampled_rows_ratio",
        "Share of the rows of the newest window that were answered from samples.",
        "rows_from_samples",
    ),
    _of_windows(
        "looked_at_ratio",
        "Share of the tuples of the newest window that were looked at, with WITH ERROR.",
        "tuples_looked_at",
    ),
)
