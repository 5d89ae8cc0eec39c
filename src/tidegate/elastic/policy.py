"""Who decides when a running query changes its mapping: one small protocol, public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Protocol, runtime_checkable

from tidegate.elastic.request import Request
from tidegate.elastic.share import ShareRequest
from tidegate.errors import OptionError
from tidegate.model.observation import BatchCadence, Observation


@dataclass(frozen=True)
class Decision:
    """What a policy asks for after a batch, most often nothing, and what it wants to remember.

    `memory` is plain data, as JSON has it: it is part of the manifest, and a restart goes on with
    it. `share` asks for another share of the tuples to be shed, of a query that can. `cadence` asks
    for batches of another size, or more or less often; `splits` lets partitioners on standby split
    keys, or has them stop that. `wanted` is how many instances it would have without the budget of
    the session; what it asks for, where it does not say.
    """

    requests: Sequence[Request] = ()
    memory: Mapping[str, Any] = field(default_factory=dict)
    share: ShareRequest | None = None
    wanted: int | None = None
    cadence: BatchCadence | None = None
    splits: bool | None = None


def check_numbers(
    policy: Policy, numbers: Sequence[str], counts: Sequence[str], optional: Sequence[str]
) -> None:
    """Refuse parameters of a policy that are no finite numbers, and counts that are not whole."""
    for name in (*numbers, *counts):
        value = getattr(policy, name)
        if value is None and name in optional:
            continue
        kinds = int if name in counts else int | float
        if isinstance(value, bool) or not isinstance(value, kinds) or not isfinite(value):
            kind = "a whole number" if name in counts else "a number"
            raise OptionError(f"policy {policy.name}", f"{name} must be {kind}", repr(value))


class Policy(Protocol):
    """Decides over observed facts; pure, so that a recorded run can be decided again.

    Its class is public: whoever has a better rule writes one.
    """

    @property
    def name(self) -> str:
        """What the timeline of switches calls it."""

    def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
        """What to ask for after a batch, seen from each subquery; `memory` is that of before."""


@runtime_checkable
class Remarking(Policy, Protocol):
    """A policy that may have something to say of a query, as that it cannot decide about it."""

    def remark(self, observed: Sequence[Observation]) -> str | None:
        """What a user should know; asked once, after the first batches, and logged."""


@runtime_checkable
class Explaining(Policy, Protocol):
    """A policy that can tell what it aims at and what it has decided, for status and summary.

    With `sheds` it chooses the share of a query that may shed more or less.
    """

    @property
    def sheds(self) -> bool: ...

    def told(self, memory: Mapping[str, Any]) -> dict[str, Any]:
        """Plain data, from what it remembers; any thread may ask."""
