"""A policy that asks for what it was told before, for tests of what a query does at a switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.elastic.policy import Decision
from tidegate.elastic.request import Request
from tidegate.model.observation import Observation


@dataclass(frozen=True)
class Scripted:
    """Asks for `requests[i]` after batch i; it remembers after which batches it has."""

    requests: Mapping[int, Sequence[Request]]

    @property
    def name(self) -> str:
        return "scripted"

    def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
        batch = max(seen.batch for seen in observed)
        found = self.requests.get(batch, ())
        return Decision(found, {"asked": [*memory.get("asked", ()), *([batch] if found else ())]})
