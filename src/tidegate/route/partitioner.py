"""The interface of partitioners, which choose the bucket of each tuple.

A plan names a partitioner for each operator. It places **units**: tuples, or partials that stand
for several tuples. A new one is a file of its own and a line in `route/registry.py`.
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
    from tidegate.route.send_counts import Sent

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

EVERY_BUCKET = -1
"""Stands for all buckets, where a tuple goes to each of them."""

EVERY_INSTANCE = -1
"""Stands for all instances, where a tuple goes to each of them."""


@dataclass(frozen=True)
class Units:
    """Units to be placed, in the order of their source: the key columns, and the number of units.

    Without `codes` unit i has the key in row i; `keys` may be empty. With `codes` several units may
    share a key, and `codes` has the row of each. `weights` is the number of tuples of each unit,
    None for one each. `periods` is the period of time of each unit. Unit i of a split that was not
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

    The choice may depend on the units of one split, on the mapping, and for `LoadAware` ones on the
    ledger; on nothing else, because a replay of the split must choose the same. Derive a dataclass
    from it, whose fields are the parameters; most members have defaults.
    """

    name: ClassVar[str]
    splits_keys: ClassVar[bool]
    """Whether units of one key may go to several buckets. An aggregate then gives partial results,
    and a second subquery merges them."""

    remembers: ClassVar[str] = ""
    """The placement (`operate.aggregate.placement`) that keeps its memory from batch to batch;
    empty for one without a memory."""

    settled_because: ClassVar[str] = ""
    """The reason that a plan gives if `settled` returns another partitioner."""

    choosing: ClassVar[str] = ""
    """How it chooses among others, in a plan."""

    def buckets(self, units: Units, mapping: Mapping) -> Int32s:
        """The bucket of each unit, from 0 on, or EVERY_BUCKET; costs O(rows)."""

    @property
    def key_memory(self) -> str | None:
        """The kind of memory for keys that its ledger needs; None for no memory."""
        return None

    @property
    def text(self) -> str:
        """What a user writes for it: its name, and the parameters that differ from the default."""
        held = [f for f in fields(self) if f.default is not MISSING]  # type: ignore[arg-type]
        given = [(f.name, getattr(self, f.name), f.default) for f in held]
        unusual = [f"{name}={value}" for name, value, usual in given if value != usual]
        return self.name + (f"?{'&'.join(unusual)}" if unusual else "")

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines about it in the fingerprint of a state that it has placed."""
        return (f"partitioner {self.text}",)

    @property
    def tuple_share(self) -> float:
        """The weight of tuples, against that of keys, in the hybrid load of windows."""
        return 0.5

    @property
    def chooser(self) -> Partitioner | None:
        """Who places units while a policy lets keys be split; None where policies have no say."""
        return None

    def settled(self, even: bool) -> Partitioner:
        """The partitioner to use in its place; `even` says that all units are equal work."""
        return self

    def without_merging(self) -> Partitioner | None:
        """Who places tuples in its stead where parts of a key cannot be merged; None: nobody."""
        return None if self.splits_keys else self

    def going_on(self, state: tuple[str, ...]) -> Partitioner:
        """Who goes on with a state that lines describe, where the query names no partitioner."""
        return self

    def in_one_place(self) -> Partitioner | None:
        """The partitioner to use in its place if the tuples of a key must stay together.

        None where there is none.
        """
        return None if self.splits_keys else self


@dataclass(frozen=True)
class Router:
    """A partitioner applied to one split; operators use it on the map side."""

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
        """The same router, which also counts what it chooses."""
        return replace(self, sent=sent)

    def buckets(
        self,
        keys: Sequence[pa.Array],
        rows: int,
        weights: Int64s | None = None,
        codes: Int64s | None = None,
        periods: Int64s | None = None,
    ) -> Int32s:
        """The bucket of each unit; `rows` is their number, also if there are no keys."""
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
