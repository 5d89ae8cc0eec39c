"""Keeps all tuples of a group, from which a window draws its sample when it ends.

A budget is divided among the groups of a window, so the share of a group is known only when the
window is complete. All tuples are stored until then, on disk only (`AggregateSpec.spills`): an
exact answer may need them anyway. The tuples that may be drawn come first and have priorities. A
pane with more groups than the budget allows has nothing to draw (`release.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.approx.array import Words
from tidegate.approx.priority import priorities
from tidegate.approx.sample import sampled
from tidegate.operate.aggregate.definition import RuledFunction
from tidegate.operate.aggregate.functions.raw_arguments import listed
from tidegate.operate.aggregate.sample.sample_state import Sampled, SampledRows, Sampling
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups, stable_order
from tidegate.operate.kernels.lists import as_lists, list_sizes
from tidegate.operate.kernels.order import Ints, Mask


@dataclass(frozen=True)
class Drawing:
    """Which tuples of a group may be drawn, and how many a window draws from all of its groups.

    A window draws at `least` so many tuples of each group, or all of the group. If the budget has
    no room for that, it draws none at all.
    """

    sampling: Sampling
    budget_rows: int
    least: int = 1


@dataclass(frozen=True)
class Drawn:
    """The tuples that an aggregate sees in a group: their number, and a list for each argument.

    The first tuples of the lists are the sample of the group (`approx.sample`), in any order: they
    have priorities. If the sample of one part of a group was released, so is that of the group.
    """

    types: tuple[pa.DataType, ...]
    drawing: Drawing
    result = pa.int64()

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        return Sampled(self.types, self.drawing.sampling).state

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        *arguments, _, src, seq = columns
        words = priorities(self.drawing.sampling.seed, src.to_numpy(), seq.to_numpy())
        seen = self.drawing.sampling.seen(arguments)
        if seen is not None:
            groups, words = groups.where(seen), words[seen]
            arguments = [column.filter(pa.array(seen)) for column in arguments]
        return self._lists(groups, np.ones(len(words), np.bool_), words, arguments)

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        count, priority, *arguments = states
        tuples: Ints = count.to_numpy()
        if len(priority.flatten()) == 0:  # all of it is released
            inside = Groups(np.repeat(groups.codes, tuples), groups.n)
            counts, *lists = listed(inside, [column.flatten() for column in arguments])
            return [counts, *as_lists(np.zeros(groups.n, np.int64), [priority.flatten()]), *lists]
        # A part that has tuples but no priorities was released, and so the whole group is.
        lost = (list_sizes(priority) == 0) & (tuples > 0)
        gone = np.bincount(groups.codes[lost], minlength=groups.n) > 0
        kept = emptied(priority, gone[groups.codes])
        inside = Groups(np.repeat(groups.codes, tuples), groups.n)
        columns = [column.flatten() for column in arguments]
        return self._lists(inside, _drawable(tuples, kept), kept.flatten().to_numpy(), columns)

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        """How many tuples there are."""
        return states[0]

    def _lists(
        self, groups: Groups, drawable: Mask, words: Words, columns: Sequence[pa.Array]
    ) -> States:
        """States of tuples; `words` are the priorities of the `drawable` ones, in their order."""
        codes = groups.codes
        taken = sampled(codes[drawable], groups.n, words, self.drawing.sampling.k)
        if taken is not None:
            words, drawable = words[taken], drawable.copy()
            drawable[drawable] = taken
        first = codes[drawable]
        by_group = stable_order(first, groups.n)
        sizes = np.bincount(first, minlength=groups.n)
        order = pa.array(stable_order(2 * codes + ~drawable, 2 * groups.n))
        lists = as_lists(groups.counts, [column.take(order) for column in columns])
        return [pa.array(groups.counts), *as_lists(sizes, [pa.array(words[by_group])]), *lists]


def drawn_rows(states: Sequence[pa.Array]) -> SampledRows:
    """The tuples that may be drawn; the group of a tuple is the number of its state."""
    count, priority, *arguments = states
    sizes, words = list_sizes(priority), priority.flatten().to_numpy()
    codes = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((words, codes))
    rows = pa.array(np.flatnonzero(_drawable(count.to_numpy(), priority))[order])
    columns = [column.flatten().take(rows) for column in arguments]
    return SampledRows(Groups(codes, len(sizes)), words[order], columns)


def _drawable(tuples: Ints, priority: pa.Array) -> Mask:
    """Marks the tuples of states that have a priority: the first ones of each state."""
    place = np.arange(int(tuples.sum())) - np.repeat(np.cumsum(tuples) - tuples, tuples)
    drawable: Mask = place < np.repeat(list_sizes(priority), tuples)
    return drawable


def emptied(lists: pa.Array, chosen: Mask) -> pa.Array:
    """The lists, with the chosen ones emptied."""
    sizes = list_sizes(lists)
    if not (sizes[chosen] > 0).any():
        return lists
    values = lists.flatten().filter(pa.array(np.repeat(~chosen, sizes)))
    return as_lists(np.where(chosen, 0, sizes), [values])[0]


DRAWN = RuledFunction(
    name="drawn",
    doc="All tuples, and which of them may be drawn, for a function that is estimated from some.",
    what="a draw",
    rule=Drawing,
    titled=lambda _: "draw",
    shows=lambda rule: [
        rule.sampling.text,
        f"a budget of {rule.budget_rows:,} rows",
        *(() if rule.sampling.skips_null else ("NULL too",)),
    ],
    in_order=True,
    holistic=True,
    spilled=True,
    family=lambda *given: Drawn(given[:-1], given[-1]),
)
