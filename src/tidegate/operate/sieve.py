"""Drops tuples in the map tasks of a query that sheds.

Both ways decide by the priority of a tuple (`approx.priority`), so that what is kept does not
depend on how the stream was cut, split or shared out:

- **uniform**: the tuples with a priority below the rate. That is known from where a tuple stands in
  its source alone, so nothing else is done with the others.
- **by concept**: these, and of each group the few tuples of lowest priority, so that every group
  stays represented. What a split keeps is more than what is kept in the end: the few of a group are
  those of the whole window, and the operator finds them among those of its splits. The concept of a
  window is how many tuples each group has; it travels with the tuples that are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.approx.array import Ints, Words
from tidegate.approx.priority import priorities
from tidegate.approx.stratum import strata
from tidegate.batch import SEQ, SRC, TS, ints
from tidegate.operate.kernels.group import Rank, dense, pack, rank
from tidegate.operate.kernels.order import flat
from tidegate.operate.operator import OUT

PRIORITY = "priority"
"""The column with the priorities of tuples that are kept by concept."""

TUPLES = "tuples"
"""The column that counts the tuples of a group, those kept and those shed: one tuple of each group
and split has the number, the others of it have 0."""


_FEW = 1_024
"""Numbers of groups may have gaps as long as there are not more of them than tuples and these."""


@dataclass(frozen=True)
class ByGroup:
    """What a group is: the outputs of the prefix that are its key, the length of a pane, and when
    one begins.

    At least the `fewest` tuples of each are kept.
    """

    keys: tuple[str, ...]
    pane_us: int
    fewest: int
    offset_us: int = 0


@dataclass(frozen=True)
class Sieve:
    """Keeps the share `rate` of the tuples; with `by`, every group stays represented."""

    seed: int
    rate: float
    by: ByGroup | None = None

    @property
    def text(self) -> str:
        """What it does, for people."""
        share = f"{(1 - self.rate) * 100:.10g} percent"
        if self.by is None:
            return f"{share} of the tuples, right after reading"
        fewest = f"keeping at least {self.by.fewest} of each group"
        return f"{share} of the tuples, {fewest}, before aggregates are evaluated"

    def at_reading(self, tuples: pa.Table) -> pa.Table:
        """What is left of tuples that were just read: by concept, all of them."""
        if self.by is not None or not tuples.num_rows:
            return tuples
        below = self._priorities(tuples) < np.uint64(limit_of(self.rate))
        return tuples.take(pa.array(np.flatnonzero(below)))

    def marked(self, tuples: pa.Table) -> tuple[pa.Table, Ints]:
        """By concept: the tuples that are kept, with PRIORITY and TUPLES, and where they were.

        `tuples` has ts, src, seq and the keys. One pass over the keys to number the groups, and a
        compiled one over these numbers.
        """
        assert self.by is not None
        groups = pack([_numbered(flat(tuples.column(OUT + k))) for k in self.by.keys], len(tuples))
        if groups.size > tuples.num_rows + _FEW:
            found = dense(groups)
            groups = Rank(found.codes, found.n)
        times, words = ints(tuples, TS) - self.by.offset_us, self._priorities(tuples)
        limit = limit_of(self.rate)
        chosen = strata(
            groups.codes, groups.size, (times, self.by.pane_us), words, self.by.fewest, limit
        )
        kept = tuples.take(pa.array(chosen.rows))
        kept = kept.append_column(OUT + PRIORITY, pa.array(chosen.priority))
        return kept.append_column(OUT + TUPLES, pa.array(chosen.tuples)), chosen.rows

    def _priorities(self, tuples: pa.Table) -> Words:
        return priorities(self.seed, ints(tuples, SRC), ints(tuples, SEQ))


def _numbered(key: pa.Array) -> Rank:
    """A number for each value of a key, in no order: that would take sorting its values."""
    if not pa.types.is_string(key.type):
        return rank(key)
    encoded = key.dictionary_encode(null_encoding="encode")
    return Rank(encoded.indices.to_numpy().astype(np.int64), max(len(encoded.dictionary), 1))


def limit_of(rate: float) -> int:
    """The priority below which tuples are kept at a rate below 1."""
    return int(rate * 2**64)
