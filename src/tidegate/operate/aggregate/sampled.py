"""Sampled: the tuples that answers are estimated from, as an aggregate function among others.

Panes, merging, handovers and restarts treat it as any function, because a sample of a union can be
made from samples of its parts (`approx.sample`). A query has one for all functions that are
estimated. No user can call it: who finishes windows reads its states, takes their rows, and runs
the ordinary families over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.approx.array import Words
from tidegate.approx.priority import priorities
from tidegate.approx.sample import lowest, lowest_of_one
from tidegate.errors import QueryError
from tidegate.operate.aggregate.definition import ANYTHING, AggregateFunction
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Ints
from tidegate.operate.kernels.total import sum_integers

_MOST_ARGUMENTS = 64


@dataclass(frozen=True)
class Sampling:
    """Which tuples a sample takes: those below a rate, and at least the k lowest of each group."""

    seed: int
    k: int
    rate: float = 0.0

    def __post_init__(self) -> None:
        if self.k < 0 or not 0 <= self.rate <= 1:
            got = f"k={self.k}, rate={self.rate}"
            raise QueryError("sample", "k >= 0 and a rate between 0 and 1 are required", got)


@dataclass(frozen=True)
class SampledRows:
    """The rows of samples, one group after the other and by ascending priority in each.

    `groups` and `columns`, the arguments in their order, are what `Family.fold` takes; a group
    may have no rows.
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
    """A sample of the tuples of a group, with all arguments, NULL included, and their number.

    The state depends on the tuples alone: their places, their arguments.
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
        return [pa.array(groups.counts), *self._samples(groups, words, arguments)]

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        tuples = sum_integers(groups, states[0].to_numpy())
        rows = rows_of(states)
        inside = Groups(groups.codes[rows.groups.codes], groups.n)
        return [pa.array(tuples), *self._samples(inside, rows.priority, rows.columns)]

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        """How many tuples there were, sampled or not."""
        return states[0]

    def _samples(self, groups: Groups, words: Words, arguments: Sequence[pa.Array]) -> States:
        rule = self.sampling
        if groups.n == 1 and not rule.rate:
            taken = lowest_of_one(words, rule.k)
            sizes = np.array([len(taken)])
        else:
            taken = lowest(groups.codes, groups.n, words, rule.k, rule.rate)
            sizes = np.bincount(groups.codes[taken], minlength=groups.n)
        return _lists(sizes, [pa.array(words[taken]), *_take(arguments, taken)])


def rows_of(states: Sequence[pa.Array]) -> SampledRows:
    """The rows in states of `Sampled`, each with the number of its state as its group."""
    _, priority, *arguments = states
    sizes = _sizes(priority)
    groups = Groups(np.repeat(np.arange(len(sizes)), sizes), len(sizes))
    words: Words = priority.flatten().to_numpy()
    return SampledRows(groups, words, [column.flatten() for column in arguments])


def trimmed(states: Sequence[pa.Array], sizes: Ints) -> States:
    """States with samples of at most so many rows, one size for each: those of lowest priority."""
    rows = rows_of(states)
    kept = np.flatnonzero(rows.ranks < sizes[rows.groups.codes])
    columns = [pa.array(rows.priority[kept]), *_take(rows.columns, kept)]
    return [states[0], *_lists(np.minimum(rows.sizes, np.maximum(sizes, 0)), columns)]


def _lists(sizes: Ints, columns: Sequence[pa.Array]) -> States:
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
    return [pa.ListArray.from_arrays(offsets, column) for column in columns]


def _sizes(lists: pa.Array) -> Ints:
    sizes: Ints = pc.list_value_length(lists).to_numpy().astype(np.int64)
    return sizes


def _take(columns: Sequence[pa.Array], rows: Ints) -> list[pa.Array]:
    picked = pa.array(rows)
    return [column.take(picked) for column in columns]


class SampledFunction(AggregateFunction):
    """The row of samples: its only parameter is the Sampling."""

    @property
    def star(self) -> bool:
        return False

    def completed(self, parameters: Sequence[Any]) -> tuple[Any, ...]:
        if [isinstance(value, Sampling) for value in parameters] != [True]:
            raise QueryError("aggregate", "a sample needs its Sampling", self.name)
        return tuple(parameters)

    def shown(self, parameters: Sequence[Any]) -> list[str]:
        (rule,) = parameters
        lowest = [f"{rule.k:,} rows of each group"] if rule.k else []
        return [*lowest, *([f"{rule.rate:.4g} of all"] if rule.rate else [])]


SAMPLED = SampledFunction(
    name="sampled",
    python=None,
    doc="A sample of the tuples, for functions that are estimated from it.",
    arguments=(ANYTHING,) * _MOST_ARGUMENTS,
    least=0,
    skips_null=False,
    in_order=True,
    family=lambda *given: Sampled(given[:-1], given[-1]),
)
