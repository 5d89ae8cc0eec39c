"""Aim: a query with a latency target, which is for the run and changes none of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.duration import duration_text
from tidegate.query.passthrough import Passthrough

if TYPE_CHECKING:
    from tidegate.query.node import Node


@dataclass(frozen=True, eq=False)
class Aim(Passthrough):
    """The rows of its child; how late they may be, how far off, and with how many instances.

    It stands at the very top of a query, where `Output` takes it off: no lowering sees one.
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
