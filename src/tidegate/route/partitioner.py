"""What every partitioner says about itself: how it chooses buckets, and what that needs.

A plan names a partitioner for each operator. It decides about **units**: tuples, or partials that
stand for several. Adding one is a file of its own and a line in `route/registry.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.route.mapping import Mapping

if TYPE_CHECKING:
    from tidegate.route.ledger import Ledger
    from tidegate.route.sent import Sent

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

EVERY_BUCKET = -1
"""Stands for all buckets, where a tuple goes to each of them."""

EVERY_INSTANCE = -1
"""Stands for all instances, where a tuple goes to each of them."""


@dataclass(frozen=True)
class Units:
    """What is to be placed, in the order of their source: the keys by column, and how many rows.

    Without `codes` a unit is a row of the keys (none: no keys); with them, several units may be of
    one key, and `codes` has its row for each. `weights` is how many tuples each unit stands for,
    None where it is one, `periods` the period of time it is in. A unit i of a split that was not
    filtered is position `start + i` of its source. `ledger` has what the source has sent before.
    """

    keys: Sequence[pa.Array]
    rows: int
    weights: Int64s | None = None
    source: str = ""
    start: int = 0
    filtered: bool = False
    codes: Int64s | None = None
    periods: Int64s | None = None
    ledger: Ledger | None = None


class Partitioner(Protocol):
    """Chooses a bucket for each unit; frozen and picklable, so that a plan can carry it.

    The choice may depend on the units of one split, on the mapping, and on the ledger where it is
    `LoadAware`; on nothing else: a replay of the split must choose the same again. Derive from it
    as a dataclass whose fields are the parameters; what most do not need has a default.
    """

    name: ClassVar[str]
    splits_keys: ClassVar[bool]
    """Whether units of one key may go to several buckets. An aggregate then gives partial results,
    and a second subquery merges them."""

    remembers: ClassVar[str] = ""
    """What an aggregate keeps for it from batch to batch, by the name of a placement
    (`operate.aggregate.placement`); none where it goes by the units of a split alone."""

    settled_because: ClassVar[str] = ""
    """Why `settled` gives another, in a plan."""

    choosing: ClassVar[str] = ""
    """How it chooses among others, in a plan."""

    def buckets(self, units: Units, mapping: Mapping) -> Int32s:
        """The bucket of each unit, from 0 on, or EVERY_BUCKET; costs O(rows)."""

    @property
    def key_memory(self) -> str | None:
        """How a ledger remembers keys for it; None where it need not."""
        return None

    @property
    def text(self) -> str:
        """What a user writes for it: its name, and the parameters that are not as usual."""
        held = [f for f in fields(self) if f.default is not MISSING]  # type: ignore[arg-type]
        given = [(f.name, getattr(self, f.name), f.default) for f in held]
        unusual = [f"{name}={value}" for name, value, usual in given if value != usual]
        return self.name + (f"?{'&'.join(unusual)}" if unusual else "")

    @property
    def lines(self) -> tuple[str, ...]:
        """What a state that it has placed depends on, for fingerprints and checkpoints."""
        return (f"partitioner {self.text}",)

    @property
    def tuple_share(self) -> float:
        """How much tuples count against keys in the hybrid load of windows."""
        return 0.5

    def settled(self, even: bool) -> Partitioner:
        """Who places units in its stead; `even` says that each is as much work as others."""
        return self

    def without_merging(self) -> Partitioner | None:
        """Who places tuples in its stead where parts of a key cannot be merged; None: nobody."""
        return None if self.splits_keys else self

    def going_on(self, state: tuple[str, ...]) -> Partitioner:
        """Who goes on with a state that lines describe, where the query names no partitioner."""
        return self

    def in_one_place(self) -> Partitioner | None:
        """Who places tuples in its stead where those of a key must stay together; None: nobody."""
        return None if self.splits_keys else self


@dataclass(frozen=True)
class Router:
    """A partitioner at work on one split: what operators ask on the map side."""

    partitioner: Partitioner
    mapping: Mapping
    source: str = ""
    start: int = 0
    filtered: bool = False
    ledger: Ledger | None = field(default=None, compare=False)
    sent: Sent | None = field(default=None, compare=False)

    @property
    def splits_keys(self) -> bool:
        return self.partitioner.splits_keys

    def with_ledger(self, ledger: Ledger) -> Router:
        return replace(self, ledger=ledger)

    def counting(self, sent: Sent) -> Router:
        """The same, which counts what it chooses."""
        return replace(self, sent=sent)

    def buckets(
        self,
        keys: Sequence[pa.Array],
        rows: int,
        weights: Int64s | None = None,
        codes: Int64s | None = None,
        periods: Int64s | None = None,
    ) -> Int32s:
        """The bucket of each unit; `rows` counts them, also where there are no keys."""
        units = Units(
            keys,
            rows,
            weights,
            self.source,
            self.start,
            self.filtered,
            codes,
            periods,
            self.ledger,
        )
        if self.sent is None:
            return self.partitioner.buckets(units, self.mapping)
        with self.sent.choosing():
            return self.partitioner.buckets(units, self.mapping)
