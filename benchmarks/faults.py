"""The table of faults that were struck, from what campaigns have counted (tests/fault_count.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TITLES = {
    "simulation": "Simulated: the driver, its tasks, disks, power",
    "alone": "A driver in one process, with a real Kafka, Postgres and S3",
    "cluster": "The same on three executors of Spark, each on a host of its own",
}
"""The kinds of campaigns, as the page names them."""


def table(report: dict[str, Any]) -> Iterator[str]:
    """Each kind of campaign, and what happened in all of them together."""
    yield "| what is struck | courses | faults | processes killed | unexplained |"
    yield "|---|---:|---:|---:|---:|"
    for kind, title in TITLES.items():
        if kind in report:
            one = report[kind]
            faults, kills = sum(one["faults"].values()), sum(one["kills"].values())
            unexplained = sum(not why for why in one["wrong"].values())
            figures = one["courses"], faults, kills, unexplained
            yield f"| {title} | {' | '.join(f'{figure:,}' for figure in figures)} |"
