"""Reports, rows and consoles for the tests of the live view."""

from __future__ import annotations

import io

import pyarrow as pa
from rich.console import Console, RenderableType

from tests.driver.batch_report import reported
from tidegate.batch import MIN_US
from tidegate.driver.report.metrics import BatchReport
from tidegate.schema import TIME

NEW_YEAR_US = 1_704_067_200_000_000
"""2024-01-01 in UTC."""


def report(batch: int, **changes: object) -> BatchReport:
    """A batch of 1000 rows in 50 ms, ten seconds of event time each."""
    newest_us = NEW_YEAR_US + (batch + 1) * 10_000_000
    values: dict[str, object] = {
        "batch": batch,
        "rows_in": 1000,
        "rows_out": 3,
        "rows_late": 0,
        "rows_rejected": 0,
        "instances": 2,
        "epoch": 0,
        "frontier_us": newest_us - 2_500_000 if newest_us > MIN_US else MIN_US,
        "seconds": 0.05,
        "spans_ms": {},
        "imbalance": 0.0,
        "state_rows": 12_345,
        "state_bytes": 678_900,
        "newest_us": newest_us,
    }
    return reported(**{**values, **changes})


def times(*seconds: float) -> pa.Array:
    """Event times, in seconds after the beginning of 2024."""
    return pa.array([NEW_YEAR_US + int(s * 1e6) for s in seconds], pa.int64()).cast(TIME)


def windows(*rows: tuple[int, str | None, float | None]) -> pa.Table:
    """Rows of windows of ten seconds: where a window ends, a key, a value."""
    return pa.table(
        {
            "window_start": times(*(r[0] - 10 for r in rows)),
            "window_end": times(*(r[0] for r in rows)),
            "route": pa.array([r[1] for r in rows], pa.string()),
            "fare": pa.array([r[2] for r in rows], pa.float64()),
        }
    )


def console(width: int = 80, height: int = 40) -> Console:
    """A terminal of a fixed size that writes into a text."""
    return Console(
        file=io.StringIO(),
        width=width,
        height=height,
        force_terminal=True,
        color_system="standard",
        markup=False,
        highlight=False,
    )


def lines(picture: RenderableType, width: int = 80) -> list[str]:
    """What a picture says, without its colours and without blanks at the ends of lines."""
    plain = Console(file=io.StringIO(), width=width, color_system=None, markup=False)
    plain.print(picture)
    return [line.rstrip() for line in plain.file.getvalue().splitlines()]
