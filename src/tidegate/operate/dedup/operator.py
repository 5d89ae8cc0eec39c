"""The operator of DISTINCT ON ... KEEP FIRST: keeps the first tuple of each key within a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.batch import MIN_US, TS, ints
from tidegate.calendar.duration import duration_text
from tidegate.operate.kernels.dedup_loop import compiled_first, first_within
from tidegate.operate.kernels.key_code import KeyCodes
from tidegate.operate.kernels.order import Mask, flat
from tidegate.operate.keyed_operator import KeyedOperator, KeyedStep
from tidegate.operate.keyed_state import FEW, KeyedKeeper, needed_from, read_keys, write_keys
from tidegate.operate.operator import InstanceWork, OperatorState
from tidegate.operate.tuple_rows import in_total_order, tuple_rows

FIRST_TUPLES = "kept"
"""The part of the state with key and order of kept tuples, as long as they may drop others."""


@dataclass(frozen=True)
class FirstOfKey(KeyedOperator):
    """Keeps a tuple unless a kept one of its key is at most `within_us` before it.

    The state is the kept tuples of the last `within_us`, at most one for each key.
    """

    kind: ClassVar[str] = "distinct"

    keys: tuple[str, ...]
    within_us: int

    task = "keeps keys for that time"

    @property
    def key_names(self) -> Sequence[str]:
        return self.keys

    @property
    def keeper(self) -> KeyedKeeper:
        return KeyedKeeper(self.within_us, self.keys)

    @property
    def state(self) -> OperatorState:
        return OperatorState({FIRST_TUPLES: self.keeper}, "it must know the keys that were kept")

    def advance(self, work: InstanceWork, tuples: pa.Table | None) -> KeyedStep | None:
        if tuples is None:
            return None
        tuples = in_total_order(tuples)
        held = read_keys(work, FIRST_TUPLES, self.keeper.columns, tuples)
        work.spans.mark("instance read state")
        kept = tuples.filter(pa.array(self.first(held, tuples)))
        work.spans.mark("instance advance")
        live = ints(kept, TS) >= needed_from(work.frontier_us, self.within_us)
        segments = write_keys(work, self.keeper, kept.filter(pa.array(live)), FIRST_TUPLES)
        return KeyedStep(partial(tuple_rows, tuples=kept), tuples, {FIRST_TUPLES: segments})

    def first(self, held: pa.Table, tuples: pa.Table) -> Mask:
        """Marks the tuples that are kept.

        `tuples` are in the total order, and all later than the `held` ones, which are the stored
        tuples of their keys and may be of other keys too.
        """
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
