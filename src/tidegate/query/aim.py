"""Aim: a latency target for a query. It guides the run and changes no row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.calendar.duration import duration_text
from tidegate.query.node.passthrough import Passthrough

if TYPE_CHECKING:
    from tidegate.query.node.node import Node


@dataclass(frozen=True, eq=False)
class Aim(Passthrough):
    """The rows of its child; how late they may be, with which error, and on how many instances.

    It is the topmost node of a query; `Output` removes it, so lowering never sees it.
    """

    child: Node
    latency_us: int
    error: float | None = None
    cost: int | None = None

    @property
    def summary(self) -> str:
        parts = [f"latency {duration_text(self.latency_us)}"]
        if self.error is not None:
            parts.append(f"error {self.error * 100:g} percent")
        if self.cost is not None:
            parts.append(f"at most {self.cost} instance{'' if self.cost == 1 else 's'}")
        return ", ".join(parts)
