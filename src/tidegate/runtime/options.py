"""How a query is to be run, apart from what it says; checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.errors import OptionError

DEFAULT_BUCKETS = 64
DEFAULT_BATCH_ROWS = 1_000_000
MAX_BUCKETS = 65_536


@dataclass(frozen=True)
class RunOptions:
    """Validated options of one run.

    `instances` is what the user asked for, None to go on with what the checkpoint has, or with
    `default_instances` at the start. `switches` maps a batch to the number of instances asked for
    from that batch on.
    """

    instances: int | None = None
    default_instances: int = 1
    buckets: int = DEFAULT_BUCKETS
    batch_rows: int = DEFAULT_BATCH_ROWS
    follow: bool = False
    switches: Mapping[int, int] = field(default_factory=dict)
    poll_s: float = 0.2

    def __post_init__(self) -> None:
        self._positive("--buckets", self.buckets)
        self._positive("--batch-rows", self.batch_rows)
        if self.buckets > MAX_BUCKETS:
            raise OptionError("--buckets", f"must be at most {MAX_BUCKETS}", str(self.buckets))
        if self.instances is not None:
            self._positive("--instances", self.instances)
            self._fits("--instances", self.instances)
        for batch, instances in self.switches.items():
            if batch < 0:
                raise OptionError(
                    "--switch",
                    "the batch must not be negative",
                    f"{batch}={instances}",
                    "Batches are numbered from 0.",
                )
            if instances < 1:
                raise OptionError(
                    "--switch",
                    "the number of instances must be at least 1",
                    f"{batch}={instances}",
                )
            self._fits("--switch", instances)

    @staticmethod
    def _positive(option: str, value: int) -> None:
        if value < 1:
            raise OptionError(option, "must be at least 1", str(value))

    def _fits(self, option: str, instances: int) -> None:
        if instances > self.buckets:
            raise OptionError(
                option,
                f"must not exceed the number of buckets ({self.buckets})",
                str(instances),
                "Ask for fewer instances or more --buckets.",
            )

    def instances_at(self, batch: int) -> int | None:
        """The number of instances asked for at a batch; None where nothing was asked."""
        asked = [b for b in self.switches if b <= batch]
        return self.switches[max(asked)] if asked else self.instances

    @property
    def first_instances(self) -> int:
        """How many instances a query starts with when nothing else was asked for."""
        return min(self.default_instances, self.buckets)
