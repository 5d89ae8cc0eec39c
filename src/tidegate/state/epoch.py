"""Prints an epoch as a manifest records it.

Every epoch has its `subquery`, its number `epoch`, its first `batch`, its `instances`, and in
`switch_ms` the time that changing the mapping took. An epoch that somebody asked for also has

    by, why       who: user, ctl, a policy by its name, --switch, --instances; and the reason given
    asked         when that was, in UTC
    applied       when the batch began that is the first to have it
    completed     when that batch was committed; with window recreation the one with which the
                  former owners have finished their windows, and absent until then
    control_ms    from asked to applied
    before        how many instances there were
    buckets_moved, bytes_moved, handover, handover_why
                  how much got another owner, what of its state was copied, how it changed hands,
                  and why so; with window recreation until_us, the migration timestamp, and over_us,
                  the frontier at which former owners are done; over_tuples has, by the sides of a
                  join whose windows count tuples, how many have come then
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

_RECREATED = ("state", "window")
"""The handovers that the text names; with shared files nothing is handed over."""


def time_of(moment: datetime) -> str:
    """A UTC time as an epoch records it, of constant length."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def epoch_text(epoch: Mapping[str, Any]) -> str:
    """An epoch in one line, for the log, the summary and `tidegate state`."""
    instances = counted(epoch["instances"], "instance")
    text = (
        f"epoch {epoch['epoch']}: {instances} from batch {epoch['batch']}, "
        f"switched in {epoch['switch_ms']:.2f} ms"
    )
    return f"{text}; {_asked_text(epoch)}" if "by" in epoch else text


def _asked_text(epoch: Mapping[str, Any]) -> str:
    parts = []
    if epoch["before"] != epoch["instances"]:
        parts.append(f"{epoch['before']:,} before")
    moved = f"{counted(epoch['buckets_moved'], 'bucket')} moved"
    if epoch["handover"] in _RECREATED:
        moved += f" by {epoch['handover']} recreation"
        if "completed" not in epoch:
            moved += " (under way)"
    if epoch["bytes_moved"]:
        moved += f" with {counted(epoch['bytes_moved'], 'byte')}"
    parts.append(moved)
    by = f"asked by {epoch['by']}"
    if not epoch["by"].startswith("--"):
        by += f" {epoch['control_ms']:,.0f} ms before"
    parts.append(by + (f": {epoch['why']}" if epoch["why"] else ""))
    return ", ".join(parts)


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number and its noun, in the singular or the plural."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
