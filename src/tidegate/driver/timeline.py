"""What is recorded of switches, between the batch that makes one and the history in manifests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.clock import utc_now
from tidegate.elastic.handover import SHARED
from tidegate.elastic.switchboard import Taken
from tidegate.state.epoch import time_of


def epoch_of(
    subquery: str, batch: int, taken: Taken, switch_ms: float, now: float
) -> dict[str, Any]:
    """The entry of an epoch that begins with a batch; `now` is on the clock of who asked."""
    mapping, asked = taken.mapping, taken.asked
    entry: dict[str, Any] = {
        "subquery": subquery,
        "epoch": int(mapping.epoch),
        "batch": batch,
        "instances": mapping.instances,
        "switch_ms": switch_ms,
    }
    if asked is None:
        return entry
    return entry | {
        "by": asked.request.by,
        "why": asked.request.why,
        "asked": asked.time,
        "applied": time_of(utc_now()),
        "control_ms": round(max(now - asked.at, 0.0) * 1e3, 3),
        "before": taken.before.instances,
        "buckets_moved": taken.moved,
        "bytes_moved": 0,
        "handover": SHARED,
    }


def completed(epochs: Iterable[Mapping[str, Any]], batch: int) -> tuple[Mapping[str, Any], ...]:
    """The history as a batch commits it: what it begins is completed now."""
    now = time_of(utc_now())
    return tuple(
        {**e, "completed": now}
        if e["batch"] == batch and "applied" in e and "completed" not in e
        else e
        for e in epochs
    )
