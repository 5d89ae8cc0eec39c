"""What is recorded of switches, between the batch that makes one and the history in manifests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.batch import EpochId
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


def completed(
    epochs: Iterable[Mapping[str, Any]], finishing: Mapping[str, EpochId | None]
) -> tuple[Mapping[str, Any], ...]:
    """The history as a batch commits it: what has no more to wait for is completed now.

    `finishing` has by subquery the oldest epoch whose owners still finish windows after the batch;
    switches after that epoch wait for them.
    """
    now = time_of(utc_now())

    def is_over(epoch: Mapping[str, Any]) -> bool:
        oldest = finishing.get(epoch["subquery"])
        return oldest is None or epoch["epoch"] <= oldest

    return tuple(
        {**e, "completed": now} if "applied" in e and "completed" not in e and is_over(e) else e
        for e in epochs
    )
