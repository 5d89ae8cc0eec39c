"""The status of a running query as plain data; any thread may ask for it."""

from __future__ import annotations

from typing import Any

from tidegate.driver.loop import Loop
from tidegate.driver.report.change_log import lines_of
from tidegate.driver.report.metrics import BatchReport
from tidegate.elastic.owners import buckets_text
from tidegate.route.mapping import restored

SHOWN_CHANGES = 4
"""How many of the newest changes of a subquery the status has as lines."""


def status_of(loop: Loop) -> dict[str, Any]:
    """What a query has done so far, and what it was asked for."""
    manifest, reports = loop.summary.manifest, loop.summary.reports
    newest: BatchReport | None = reports[-1] if reports else None
    return {
        "batch": manifest.batch,
        "frontier_us": manifest.frontier_us,
        "instances": manifest.instances,
        "epoch": manifest.epoch,
        "subqueries": {
            loop.plan.names[key]: {"epoch": of["epoch"], "instances": of["instances"]}
            for key, of in manifest.mappings.items()
        },
        "executors": loop.runner.executors(),
        "sources": [
            {name: value for name, value in source.items() if name != "log"}
            for source in manifest.sources
        ],
        "newest_batch_ms": round(newest.seconds * 1e3, 3) if newest else None,
        "newest_latency_ms": newest.latency.as_dict() if newest and newest.latency else None,
        "policy": loop.manager.status(),
        "pending": pending_of(loop),
        "shedding": loop.pipeline.subqueries.shedding.status(),
        "window_lines": loop.summary.window_lines(),
        "advice": loop.books.advice.lines(),
        "change_lines": lines_of(loop.summary.changes(), SHOWN_CHANGES),
        "newest_windows": {
            name: digest.newest_as_dict() for name, digest in loop.summary.windows().items()
        },
        **loop.summary.as_dict(),
    }


def pending_of(loop: Loop) -> list[dict[str, Any]]:
    """What was asked for and waits for the next batch, by subquery."""
    return [
        {
            "subquery": name,
            "request": str(asked.request.change),
            "by": asked.request.by,
            "why": asked.request.why,
            "asked": asked.time,
        }
        for name, asked in loop.controls.waiting().items()
    ]


def buckets_of(loop: Loop) -> dict[str, dict[str, str]]:
    """By subquery the buckets of each instance, in the form that `switch` takes."""
    found = {}
    for key, of in loop.summary.manifest.mappings.items():
        mapping = restored(of["epoch"], of["instances"], of["owners"])
        found[loop.plan.names[key]] = {
            str(i): buckets_text(mapping.owned_by(i)) for i in range(mapping.instances)
        }
    return found
