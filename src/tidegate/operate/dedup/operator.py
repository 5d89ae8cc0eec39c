"""The operator of DISTINCT ON ... KEEP FIRST: of each key the first tuple within a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.batch import MIN_US, TS, ints
from tidegate.collect.trigger import TriggerOrder
from tidegate.duration import duration_text
from tidegate.operate.bucket_work import rows_by_bucket
from tidegate.operate.kernels.dedup_loop import compiled_first, first_within
from tidegate.operate.kernels.key_code import KeyCodes
from tidegate.operate.kernels.order import Mask, flat
from tidegate.operate.keyed_state import (
    FEW,
    KeyedKeeper,
    deal_by_key,
    needed_from,
    read_keys,
    write_keys,
)
from tidegate.operate.operator import (
    Arrival,
    InstanceWork,
    MapWork,
    Operator,
    OperatorState,
    Result,
    Share,
    Traits,
    plain_names,
    together,
)
from tidegate.operate.tuple_rows import in_total_order, tuple_rows
from tidegate.route.hash import BY_HASH

FIRST_TUPLES = "kept"
"""What the segments hold: key and order of the kept tuples, while they may drop others."""


@dataclass(frozen=True)
class FirstOfKey(Operator):
    """Keeps a tuple unless a kept one of its key is at most `within_us` before it.

    The state is the kept tuples of the last `within_us`, which are one for each key.
    """

    kind: ClassVar[str] = "distinct"

    keys: tuple[str, ...]
    within_us: int

    partitioner = BY_HASH
    order = TriggerOrder("ts, input, source, position")
    traits = Traits(deals_ahead=True)

    @property
    def keeper(self) -> KeyedKeeper:
        return KeyedKeeper(self.within_us, self.keys)

    @property
    def state(self) -> OperatorState:
        return OperatorState({FIRST_TUPLES: self.keeper}, "it must know the keys that were kept")

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        return deal_by_key(work, plain_names(tuples), self.keys)

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        tuples = together(arrived)
        if tuples is None:
            return Result(tuple(p.carried.empty_table() for p in work.ports), 0)
        tuples = in_total_order(tuples)
        held = read_keys(work, FIRST_TUPLES, self.keeper.columns, tuples)
        work.spans.mark("instance read state")
        kept = tuples.filter(pa.array(self.first(held, tuples)))
        work.spans.mark("instance advance")
        live = ints(kept, TS) >= needed_from(work.frontier_us, self.within_us)
        segments = write_keys(work, self.keeper, kept.filter(pa.array(live)), FIRST_TUPLES)
        work.spans.mark("instance write")
        rows = tuple(tuple_rows(port, kept) for port in work.ports)
        work.spans.mark("instance finish")
        touched = rows_by_bucket([tuples], work.mapping.buckets)
        return Result(rows, tuples.num_rows, {FIRST_TUPLES: segments}, bucket_work=touched)

    def first(self, held: pa.Table, tuples: pa.Table) -> Mask:
        """Which tuples are kept; they are in the total order, after all that are `held`."""
        keys = KeyCodes.of([flat(tuples.column(k)) for k in self.keys], tuples.num_rows)
        before = keys.find([flat(held.column(k)) for k in self.keys], held.num_rows)
        until = np.full(keys.n, MIN_US)
        known = before >= 0
        np.maximum.at(until, before[known], ints(held, TS)[known] + self.within_us)
        loop = first_within if tuples.num_rows < FEW else compiled_first()
        kept: Mask = loop(keys.codes, ints(tuples, TS), until, self.within_us)
        return kept

    def title(self) -> str:
        return f"the first tuple of each key within {duration_text(self.within_us)}"

    def details(self, texts: Mapping[str, str]) -> list[str]:
        by = ", ".join(texts.get(key, key) for key in self.keys)
        return [f"by {by}", "keeps keys for that time: one task per instance, shuffle by bucket"]
