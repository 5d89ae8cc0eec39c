"""Drops tuples in the map tasks of a query that sheds.

Both ways decide by the priority of a tuple (`approx.priority`), so that what is kept does not
depend on how the stream was cut, split or shared out:

- **uniform**: the tuples with a priority below the rate. That is known from where a tuple stands in
  its source alone, so nothing else is done with the others.
- **by concept**: these, and of each group the few tuples of lowest priority, so that every group
  stays represented. What a split keeps is more than what is kept in the end: the few of a group are
  those of the whole window, and the operator finds them among those of its splits. The concept of a
  window is how many tuples each group has; it travels with the tuples that are kept.

The rate may change at an event time (`approx.rate`). A tuple then stands for unit / rate tuples of
the unit rate that the query was planned with. What is more or less than one of that is its
**excess**: sums over the excess correct sums over tuples, and there is none where nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.approx.array import Ints, Words
from tidegate.approx.compiled_loops import prepare
from tidegate.approx.priority import priorities
from tidegate.approx.rate import NANO, WHOLE, RateLog, levelled, limit_of
from tidegate.approx.stratum import Strata, strata
from tidegate.batch import SEQ, SRC, TS, ints
from tidegate.operate.kernels.group import Rank, dense, pack, rank, rank_integers
from tidegate.operate.kernels.order import flat
from tidegate.operate.operator import OUT

PRIORITY = "priority"
"""The column with the priorities of tuples that are kept by concept."""

TUPLES = "tuples"
"""The column that counts the tuples of a group, those kept and those shed: one tuple of each group
and split has the number, the others of it have 0."""


DUE = "due"
"""The column that says, as TUPLES does, how many tuples of a group are to be kept, in parts of
NANO."""

_FEW = 1_024
"""Numbers of groups may have gaps as long as there are not more of them than tuples and these."""


@dataclass(frozen=True)
class ByGroup:
    """What a group is: the outputs of the prefix that are its key, the length of a pane, and when
    one begins.

    At least the `fewest` tuples of each are kept, and of the others `slack` times the rate.
    """

    keys: tuple[str, ...]
    pane_us: int
    fewest: int
    offset_us: int = 0
    slack: int = 1

    @property
    def text(self) -> str:
        """What it sees to, for people."""
        return f"keeping at least {self.fewest} of each group, before aggregates are evaluated"

    def limit(self, rate: float) -> int:
        """The priority below which a tuple is kept, whatever its group has."""
        return min(self.slack * limit_of(rate), WHOLE - 1)

    def beside(self, due: Callable[[], Ints]) -> dict[str, Ints]:
        """Columns beside TUPLES, of numbers that one tuple of each group and split has."""
        return {}

    def whole(self, count: int) -> dict[str, pa.Array] | None:
        """PRIORITY and TUPLES of tuples that are all kept; None where their order is needed.

        What is below the rate is folded as it comes, so any priority below it will do. Groups need
        not be numbered to count their tuples: each counts as one.
        """
        return {
            PRIORITY: pa.array(np.zeros(count, np.uint64)),
            TUPLES: pa.array(np.ones(count, np.int64)),
        }


@dataclass(frozen=True)
class InTotal(ByGroup):
    """The same where a share of all tuples is kept, and groups are dropped for it.

    What a split keeps are candidates: which of them are kept is decided where all groups are.
    """

    text = "as a total over all groups, before aggregates are evaluated"

    def beside(self, due: Callable[[], Ints]) -> dict[str, Ints]:
        return {DUE: due()}

    def whole(self, count: int) -> dict[str, pa.Array] | None:
        return None


@dataclass(frozen=True)
class Sieve:
    """Keeps a share of the tuples; with `by`, every group stays represented.

    `rate` is the one that priorities are levelled to, and `unit` what a tuple without excess was
    kept with. `rates` says what is kept now; `excesses` are the columns that are made of the excess
    and of outputs of the prefix.
    """

    seed: int
    rate: float
    by: ByGroup | None = None
    unit: float | None = None
    rates: RateLog | None = None
    excesses: tuple[Excess, ...] = ()

    @property
    def now(self) -> RateLog:
        """What is kept, by event time."""
        return self.rates or RateLog.of(self.first)

    @property
    def first(self) -> float:
        """The rate that a query begins with."""
        return self.rate if self.unit is None else self.unit

    @property
    def text(self) -> str:
        """What it does, for people."""
        most = "up to " if self.first != self.rate else ""
        share = f"{most}{(1 - self.rate) * 100:.10g} percent"
        if self.by is None:
            return f"{share} of the tuples, right after reading"
        return f"{share} of the tuples, {self.by.text}"

    def at_reading(self, tuples: pa.Table) -> pa.Table:
        """What is left of tuples that were just read: by concept, all of them.

        Its first tuples wait for the loops to be compiled, not the first that are shed: those come
        in an overload.
        """
        prepare()
        if self.by is not None or not tuples.num_rows or self._rate_of_all(tuples) == 1.0:
            return tuples
        below = self._levelled(tuples) < np.uint64(limit_of(self.rate))
        return tuples if below.all() else tuples.take(pa.array(np.flatnonzero(below)))

    def marked(self, tuples: pa.Table) -> tuple[pa.Table, Ints | None]:
        """By concept: the tuples that are kept, with PRIORITY and TUPLES, and where they were.

        `tuples` has ts, src, seq and the keys. One pass over the keys to number the groups, and a
        compiled one over these numbers. No pass while nothing is shed: the positions are then None.
        """
        assert self.by is not None
        whole = self.by.whole(tuples.num_rows) if self._rate_of_all(tuples) == 1.0 else None
        if whole is not None:
            for name, values in whole.items():
                tuples = tuples.append_column(OUT + name, values)
            return tuples, None
        groups = pack([_numbered(flat(tuples.column(OUT + k))) for k in self.by.keys], len(tuples))
        if groups.size > tuples.num_rows + _FEW:
            found = dense(groups)
            groups = Rank(found.codes, found.n)
        times, words = ints(tuples, TS) - self.by.offset_us, self._levelled(tuples)
        panes, limit = (times, self.by.pane_us), self.by.limit(self.rate)
        chosen = strata(groups.codes, groups.size, panes, words, self.by.fewest, limit)
        kept = tuples.take(pa.array(chosen.rows))
        kept = kept.append_column(OUT + PRIORITY, pa.array(chosen.priority))
        kept = kept.append_column(OUT + TUPLES, pa.array(chosen.tuples))
        due = partial(self._due, tuples, groups.codes, times // self.by.pane_us, chosen)
        for name, column in self.by.beside(due).items():
            kept = kept.append_column(OUT + name, pa.array(column))
        return kept, chosen.rows

    def weighed(self, tuples: pa.Table) -> pa.Table:
        """Tuples that are kept, with the columns of their excess over the outputs of the prefix."""
        if not self.excesses:
            return tuples
        excess = self._excess(tuples)
        for of in self.excesses:
            values = [flat(tuples.column(OUT + name)) for name in of.arguments]
            tuples = tuples.append_column(f"{OUT}{of}", of.made(excess, values))
        return tuples

    def _priorities(self, tuples: pa.Table) -> Words:
        return priorities(self.seed, ints(tuples, SRC), ints(tuples, SEQ))

    def _levelled(self, tuples: pa.Table) -> Words:
        """Priorities of which those below the limit of `rate` are kept, whatever the rates are."""
        words = self._priorities(tuples)
        spans = self.now.spans(ints(tuples, TS))
        if len(spans) == 1:
            return levelled(words, spans[0][0], self.rate)
        for rate, part in spans:
            words[part] = levelled(words[part], rate, self.rate)
        return words

    def _rate_of_all(self, tuples: pa.Table) -> float | None:
        """The rate that counts for all of these tuples, None where they have several."""
        spans = self.now.spans(ints(tuples, TS))
        return spans[0][0] if len(spans) == 1 else None

    def _excess(self, tuples: pa.Table) -> pa.Array:
        if self._rate_of_all(tuples) == self.first:
            return pa.nulls(tuples.num_rows, pa.float64())
        rates = self.now.at(ints(tuples, TS))
        return pa.array(self.first / rates - 1, mask=rates == self.first)

    def _due(self, tuples: pa.Table, codes: Ints, panes: Ints, chosen: Strata) -> Ints:
        """What is due of the group and pane of each tuple that has the number of its tuples."""
        times = ints(tuples, TS)
        spans = self.now.spans(times)
        if len(spans) == 1:
            return chosen.tuples * nano(spans[0][0])
        groups = dense(pack([rank_integers(panes), rank_integers(codes)], len(codes)))
        each = np.zeros(groups.n, np.int64)
        np.add.at(each, groups.codes, np.rint(self.now.at(times) * NANO).astype(np.int64))
        return np.where(chosen.tuples > 0, each[groups.codes[chosen.rows]], 0)


class Excess(Protocol):
    """A column over the excess of tuples, and over some of their outputs."""

    @property
    def arguments(self) -> tuple[str, ...]: ...

    def made(self, excess: pa.Array, values: Sequence[pa.Array]) -> pa.Array:
        """The column, of doubles; NULL for tuples without excess."""


@dataclass(frozen=True)
class ExcessOfTuples:
    """The excess of the tuples that have all of these values; without any, of all tuples."""

    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " of ".join(["excess", *(["/".join(self.arguments)] if self.arguments else [])])

    def made(self, excess: pa.Array, values: Sequence[pa.Array]) -> pa.Array:
        if excess.null_count == len(excess):
            return excess
        for column in values:
            excess = pc.if_else(column.is_valid(), excess, pa.scalar(None, pa.float64()))
        return excess


@dataclass(frozen=True)
class ExcessTimesValue:
    """The excess times a value; a condition counts as 1 where it is true."""

    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"excess times {self.arguments[0]}"

    def made(self, excess: pa.Array, values: Sequence[pa.Array]) -> pa.Array:
        if excess.null_count == len(excess):
            return excess
        return pc.multiply(excess, values[0].cast(pa.float64(), safe=False))


def nano(rate: float) -> int:
    """A rate in parts of NANO."""
    return round(rate * NANO)


def _numbered(key: pa.Array) -> Rank:
    """A number for each value of a key, in no order: that would take sorting its values."""
    if not pa.types.is_string(key.type):
        return rank(key)
    encoded = key.dictionary_encode(null_encoding="encode")
    return Rank(encoded.indices.to_numpy().astype(np.int64), max(len(encoded.dictionary), 1))
