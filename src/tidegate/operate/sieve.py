"""Drops tuples in the map tasks of a query that sheds.

Both ways decide by the priority of a tuple (`approx.priority`). So what is kept does not depend on
how the stream was cut, split or divided:

- **uniform** keeps the tuples with a priority below the rate. The priority depends only on the
  tuple's place in its source, so the other tuples cost nothing more.
- **by concept** also keeps, of each group, the few tuples of lowest priority, so that every group
  stays represented. A split keeps its own few tuples of a group. The operator finds those of the
  whole window among them. The concept of a window, the number of tuples of each group, travels with
  the kept tuples.

The rate may change at an event time (`approx.rate`). The query was planned with a unit rate. A
tuple that was kept at another rate stands for unit / rate tuples. The difference from 1 is its
**excess**. Sums over the excess correct sums over tuples; there is no excess where the rate is the
unit rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol

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
"""The column with the priority of a tuple that is kept by concept."""

TUPLES = "tuples"
"""The column that counts the tuples of a group, kept or shed: one tuple of each group and split has
the number, and the others have 0."""


DUE = "due"
"""The column with how many tuples of a group are due to be kept, times NANO. As with TUPLES, one
tuple of each group and split has the number."""

_FEW = 1_024
"""Group numbers may have gaps while they stay below the number of tuples plus this."""


@dataclass(frozen=True)
class ByGroup:
    """Keeps tuples of each group and pane: at least `fewest`, and the share `slack` * rate.

    `keys` are the outputs of the prefix that are the key of a group. Panes are `pane_us` long and
    begin at `offset_us`.
    """

    keys: tuple[str, ...]
    pane_us: int
    fewest: int
    offset_us: int = 0
    slack: int = 1

    chosen: ClassVar[bool] = False
    """Whether priorities choose also among the tuples that are not to be shed."""

    @property
    def text(self) -> str:
        """What it guarantees, for people."""
        return f"keeping at least {self.fewest} of each group, before aggregates are evaluated"

    def limit(self, rate: float) -> int:
        """A tuple with a priority below this is kept, whatever its group is."""
        return min(self.slack * limit_of(rate), WHOLE - 1)

    def beside(self, due: Callable[[], Ints]) -> dict[str, Ints]:
        """Columns beside TUPLES, with a number at one tuple of each group and split."""
        return {}


@dataclass(frozen=True)
class InTotal(ByGroup):
    """Keeps a share of all tuples in total, and may drop groups for it.

    A split keeps candidates. The instance that has all groups of a window chooses among them.
    """

    text = "as a total over all groups, before aggregates are evaluated"
    chosen: ClassVar[bool] = True

    def beside(self, due: Callable[[], Ints]) -> dict[str, Ints]:
        return {DUE: due()}


@dataclass(frozen=True)
class Sieve:
    """Keeps a share of the tuples; with `by`, every group stays represented.

    `rates` has the rates by event time. Priorities are scaled so that the tuples to keep are always
    those below the one limit of `rate`. `unit` is the rate of a tuple without excess. `excesses`
    are the columns that are computed from the excess and from outputs of the prefix.
    """

    seed: int
    rate: float
    by: ByGroup | None = None
    unit: float | None = None
    rates: RateLog | None = None
    excesses: tuple[Excess, ...] = ()

    @property
    def now(self) -> RateLog:
        """The rates by event time."""
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
        """The tuples that are left right after reading; all of them where shedding is by concept.

        It compiles the loops at the first tuples, not at the first that are shed: those come in an
        overload, when there is no time for it.
        """
        prepare()
        if self.by is not None or not tuples.num_rows or self._rate_of_all(tuples) == 1.0:
            return tuples
        below = self._levelled(tuples) < np.uint64(limit_of(self.rate))
        return tuples if below.all() else tuples.take(pa.array(np.flatnonzero(below)))

    def marked(self, tuples: pa.Table) -> tuple[pa.Table, Ints | None]:
        """By concept: the tuples that are kept, with PRIORITY and TUPLES, and their positions.

        `tuples` has ts, src, seq and the keys. Costs a pass over the keys to number the groups, and
        a compiled pass over these numbers. While nothing is shed there is no pass, the positions
        are None, and so are the values of both columns. A tuple at the rate 1 has no PRIORITY.
        """
        assert self.by is not None
        if self._rate_of_all(tuples) == 1.0 and not self.by.chosen:
            for name in (PRIORITY, TUPLES):
                tuples = tuples.append_column(OUT + name, pa.nulls(tuples.num_rows))
            return tuples, None
        groups = pack([_numbered(flat(tuples.column(OUT + k))) for k in self.by.keys], len(tuples))
        # The compiled pass has arrays by group number, which must not be mostly gaps.
        if groups.size > tuples.num_rows + _FEW:
            found = dense(groups)
            groups = Rank(found.codes, found.n)
        times, words = ints(tuples, TS) - self.by.offset_us, self._levelled(tuples)
        panes, limit = (times, self.by.pane_us), self.by.limit(self.rate)
        chosen = strata(groups.codes, groups.size, panes, words, self.by.fewest, limit)
        kept = tuples.take(pa.array(chosen.rows))
        certain = None if self.by.chosen else self.now.at(ints(kept, TS)) == 1.0
        kept = kept.append_column(OUT + PRIORITY, pa.array(chosen.priority, mask=certain))
        kept = kept.append_column(OUT + TUPLES, pa.array(chosen.tuples))
        due = partial(self._due, tuples, groups.codes, times // self.by.pane_us, chosen)
        for name, column in self.by.beside(due).items():
            kept = kept.append_column(OUT + name, pa.array(column))
        return kept, chosen.rows

    def weighed(self, tuples: pa.Table) -> pa.Table:
        """Add the columns of `excesses` to tuples that are kept."""
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
        """Scaled priorities: the tuples below the limit of `rate` are kept, at any of the rates."""
        words = self._priorities(tuples)
        spans = self.now.spans(ints(tuples, TS))
        if len(spans) == 1:
            return levelled(words, spans[0][0], self.rate)
        for rate, part in spans:
            words[part] = levelled(words[part], rate, self.rate)
        return words

    def _rate_of_all(self, tuples: pa.Table) -> float | None:
        """The rate of all of these tuples; None where they have several rates."""
        spans = self.now.spans(ints(tuples, TS))
        return spans[0][0] if len(spans) == 1 else None

    def _excess(self, tuples: pa.Table) -> pa.Array:
        if self._rate_of_all(tuples) == self.first:
            # States of windows alone are made of tuples by concept: these need no doubles for it.
            return pa.nulls(tuples.num_rows, pa.float64() if self.by is None else None)
        rates = self.now.at(ints(tuples, TS))
        return pa.array(self.first / rates - 1, mask=rates == self.first)

    def _due(self, tuples: pa.Table, codes: Ints, panes: Ints, chosen: Strata) -> Ints:
        """DUE for each kept tuple: the number of its group and pane where TUPLES has one, or 0."""
        times = ints(tuples, TS)
        spans = self.now.spans(times)
        if len(spans) == 1:
            return chosen.tuples * nano(spans[0][0])
        groups = dense(pack([rank_integers(panes), rank_integers(codes)], len(codes)))
        each = np.zeros(groups.n, np.int64)
        np.add.at(each, groups.codes, np.rint(self.now.at(times) * NANO).astype(np.int64))
        return np.where(chosen.tuples > 0, each[groups.codes[chosen.rows]], 0)


class Excess(Protocol):
    """A column computed from the excess of tuples and from some of their columns."""

    @property
    def arguments(self) -> tuple[str, ...]: ...

    def made(self, excess: pa.Array, values: Sequence[pa.Array]) -> pa.Array:
        """The column, of doubles; NULL for tuples without excess."""


@dataclass(frozen=True)
class ExcessOfTuples:
    """The excess of the tuples in which none of the arguments is NULL."""

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
    """The excess times a value; a true condition counts as 1."""

    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"excess times {self.arguments[0]}"

    def made(self, excess: pa.Array, values: Sequence[pa.Array]) -> pa.Array:
        if excess.null_count == len(excess):
            return excess
        return pc.multiply(excess, values[0].cast(pa.float64(), safe=False))


def nano(rate: float) -> int:
    """A rate times NANO, rounded."""
    return round(rate * NANO)


def _numbered(key: pa.Array) -> Rank:
    """Number the values of a key; of texts in no order, because an order would take a sort."""
    if not pa.types.is_string(key.type):
        return rank(key)
    encoded = key.dictionary_encode(null_encoding="encode")
    return Rank(encoded.indices.to_numpy().astype(np.int64), max(len(encoded.dictionary), 1))
