"""Keeps a sample of tuples as the state of an aggregate function.

Panes, merging, handovers and restarts treat it as any function, because the sample of a union can
be made from the samples of its parts (`approx.sample`). Users cannot call it. The answer of a
window takes the rows out of the states, and runs the ordinary families over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa

from tidegate.approx.array import Words
from tidegate.approx.priority import priorities
from tidegate.approx.sample import sampled
from tidegate.errors import QueryError
from tidegate.operate.aggregate.definition import RuledFunction
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.lists import as_lists, inside_lists, list_sizes
from tidegate.operate.kernels.order import Ints, Mask, valid
from tidegate.operate.kernels.sum.total import sum_integers


@dataclass(frozen=True)
class Sampling:
    """Which tuples a sample takes: at least k of each group, and at most `most`, if it is given.

    With `skips_null` it ignores tuples whose arguments are all NULL. The tuples for which the
    condition of a FILTER does not hold are among these.
    """

    seed: int
    k: int
    skips_null: bool = True
    most: int | None = None

    def __post_init__(self) -> None:
        if self.k < 1:
            raise QueryError("sample", "k >= 1 is required", f"k={self.k}")
        if self.most is not None and self.most < self.k:
            raise QueryError("sample", f"most >= {self.k} is required", f"most={self.most}")

    @property
    def text(self) -> str:
        """How many tuples it takes, for people and for the identity of a state."""
        upto = "or more" if self.most is None else f"to {self.most:,}"
        return f"{self.k:,} rows {upto} of each group"

    def seen(self, arguments: Sequence[pa.Array]) -> Mask | None:
        """Marks the tuples that an aggregate of these arguments sees; None for all of them."""
        masks = [valid(column) for column in arguments] if self.skips_null else []
        there = [mask for mask in masks if mask is not None]
        return reduce(np.logical_or, there) if masks and len(there) == len(masks) else None


@dataclass(frozen=True)
class SampledRows:
    """The rows of samples, group after group, each sorted by ascending priority.

    `Family.fold` takes `groups` and `columns`, which are the arguments. A group may have no rows.
    """

    groups: Groups
    priority: Words
    columns: list[pa.Array]

    @property
    def sizes(self) -> Ints:
        """How many rows each sample has."""
        return self.groups.counts

    @property
    def ranks(self) -> Ints:
        """The place of each row in its sample, from 0."""
        return np.arange(len(self.priority)) - self.groups.starts[self.groups.codes]


@dataclass(frozen=True)
class Sampled:
    """The number of tuples that an aggregate sees in a group, and a sample of them.

    The content of a state depends only on the places and arguments of the tuples, so it is the same
    for any cut. The order inside its lists is not defined.
    """

    types: tuple[pa.DataType, ...]
    sampling: Sampling
    result = pa.int64()

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        arguments = ((f"x{i}", pa.list_(type_)) for i, type_ in enumerate(self.types))
        return (("tuples", pa.int64()), ("priority", pa.list_(pa.uint64())), *arguments)

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        *arguments, _, src, seq = columns
        words = priorities(self.sampling.seed, src.to_numpy(), seq.to_numpy())
        return self.sample(groups, words, arguments)

    def sample(self, groups: Groups, words: Words, arguments: Sequence[pa.Array]) -> States:
        """The states of groups of tuples that have these priorities."""
        seen = self.sampling.seen(arguments)
        if seen is not None:
            groups, words = groups.where(seen), words[seen]
            arguments = [column.filter(pa.array(seen)) for column in arguments]
        return [pa.array(groups.counts), *self._lists(groups, words, arguments)]

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        tuples = sum_integers(groups, states[0].to_numpy())
        _, priority, *arguments = states
        words: Words = priority.flatten().to_numpy()
        rows = [column.flatten() for column in arguments]
        return [pa.array(tuples), *self._lists(inside_lists(groups, priority), words, rows)]

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        """How many tuples there were, sampled or not."""
        return states[0]

    def _lists(self, groups: Groups, words: Words, arguments: Sequence[pa.Array]) -> States:
        """The samples of groups as lists; the first list has the priorities."""
        taken = sampled(groups.codes, groups.n, words, self.sampling.k, self.sampling.most)
        rows = None if taken is None else np.flatnonzero(taken)
        groups = groups.where(taken)
        if not bool(np.all(groups.codes[1:] >= groups.codes[:-1])):
            rows = groups.order if rows is None else rows[groups.order]
        columns = [pa.array(words), *arguments]
        if rows is not None:
            columns = [column.take(pa.array(rows)) for column in columns]
        return as_lists(groups.counts, columns)


def rows_of(states: Sequence[pa.Array]) -> SampledRows:
    """The rows in states of `Sampled`; the group of a row is the number of its state."""
    _, priority, *arguments = states
    sizes = list_sizes(priority)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    words: Words = priority.flatten().to_numpy()
    order = np.lexsort((words, codes))
    columns = [column.flatten().take(pa.array(order)) for column in arguments]
    return SampledRows(Groups(codes, len(sizes)), words[order], columns)


def chosen_rows(states: Sequence[pa.Array], chosen: Mask) -> States:
    """States of `Sampled` with only the chosen rows; `chosen` follows the order of the lists."""
    count, *lists = states
    sizes = list_sizes(lists[0])
    codes = np.repeat(np.arange(len(sizes)), sizes)
    left = np.bincount(codes[chosen], minlength=len(sizes))
    return [count, *as_lists(left, [c.flatten().filter(pa.array(chosen)) for c in lists])]


def lowest_rows(states: Sequence[pa.Array], k: int) -> States:
    """States of `Sampled` with at most the k rows of lowest priority in each."""
    rows = rows_of(states)
    kept = np.flatnonzero(rows.ranks < k)
    columns = [column.take(pa.array(kept)) for column in (pa.array(rows.priority), *rows.columns)]
    return [states[0], *as_lists(np.minimum(rows.sizes, k), columns)]


SAMPLED = RuledFunction(
    name="sampled",
    doc="A sample of the tuples, for a function that is estimated from it.",
    what="a sample",
    rule=Sampling,
    titled=lambda _: "sample",
    shows=lambda rule: [
        rule.text,
        *(() if rule.skips_null else ("NULL too",)),
    ],
    in_order=True,
    family=lambda *given: Sampled(given[:-1], given[-1]),
)
