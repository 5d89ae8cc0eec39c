"""The policy that leaves instances to the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.elastic.policy import Decision
from tidegate.model.observation import Observation


@dataclass(frozen=True)
class Fixed:
    """Asks for nothing; instances change only where a user asks for it."""

    @property
    def name(self) -> str:
        return "fixed"

    def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
        return Decision()
