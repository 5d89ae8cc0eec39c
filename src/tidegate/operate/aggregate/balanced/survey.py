"""Surveys the tuples of each pane, for the decision which groups are trimmed.

A survey counts tuples in bins, by the hash of their key; a bin is a part of a bucket. For one tuple
in eight, chosen by priority, it also sums what gives the variance of the values. That is a CountMin
sketch of one row: rare groups share bins, and frequent ones stand out (section 7.4.3.1). Surveys
add up exactly, in any order, so they do not depend on batches and tasks. They go to all instances,
and one of these stores them. When a window closes, every instance has the whole survey.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.approx.array import Words
from tidegate.approx.priority import priorities
from tidegate.batch import ints
from tidegate.operate.aggregate.balanced.balancing import Balancing
from tidegate.operate.aggregate.pane.fold_placement import BY_INSTANCE, BY_MAP
from tidegate.operate.aggregate.pane.pane import AggregateSpec, merge
from tidegate.operate.aggregate.side_state import SideState
from tidegate.operate.keeper import CELLS
from tidegate.operate.kernels.group import Groups, dense, pack, rank_integers
from tidegate.operate.kernels.order import Ints, canonical, flat
from tidegate.operate.kernels.sum.total import sum_integers
from tidegate.route.bucket import hash_of
from tidegate.route.survey import LEAST_BINS

SURVEY = "survey"
"""The name of this part of the state in a manifest."""

_BELOW = np.uint64(2**61)
"""The values of tuples with a priority below this are surveyed: one in eight."""


def bins_of(keys: Sequence[pa.Array], buckets: int) -> Ints:
    """The bin of each row of keys; the bucket of a bin is its number modulo the buckets."""
    bins: Ints = (hash_of(keys) % np.uint64(bins_in(buckets))).astype(np.int64)
    return bins


def bins_in(buckets: int) -> int:
    """How many bins there are."""
    return buckets * max(LEAST_BINS // buckets, 1)


def survey_partials(
    rules: Balancing, spec: AggregateSpec, partials: pa.Table, buckets: int
) -> pa.Table:
    """Survey tuples that map tasks have folded into lists; O(partials and surveyed values)."""
    held = rules.state.name
    sizes = ints(partials, f"{held}.n")
    rows = np.repeat(np.arange(len(sizes)), sizes) if rules.surveyed else np.empty(0, np.int64)
    values = {
        name: flat(partials.column(f"{held}.x{i}")).flatten()
        for i, name in enumerate(rules.state.arguments)
    }
    words: Words = flat(partials.column(f"{held}.priority")).flatten().to_numpy()
    return _survey(rules, spec, partials, buckets, sizes, rows, words, values)


def survey_rows(rules: Balancing, spec: AggregateSpec, rows: pa.Table, buckets: int) -> pa.Table:
    """Survey tuples that are sent unfolded."""
    count = rows.num_rows
    words = priorities(rules.seed, ints(rows, "src"), ints(rows, "seq"))
    values = {name: flat(rows.column(name)) for name, _ in rules.surveyed}
    return _survey(
        rules, spec, rows, buckets, np.ones(count, np.int64), np.arange(count), words, values
    )


SURVEYS = {BY_MAP.name: survey_partials, BY_INSTANCE.name: survey_rows}
"""The survey of what map tasks deal, by the name of the folding."""


def _survey(
    rules: Balancing,
    spec: AggregateSpec,
    table: pa.Table,
    buckets: int,
    sizes: Ints,
    rows: Ints,
    words: Words,
    values: dict[str, pa.Array],
) -> pa.Table:
    """Survey a table with panes and keys, in which each row has `sizes` tuples.

    For each tuple, `rows` has its row, `words` its priority, and `values` its arguments.
    """
    survey = rules.survey(spec)
    if table.num_rows == 0:
        return survey.partial_schema.empty_table()
    keys = [canonical(flat(table.column(name), type_)) for name, type_ in spec.keys]
    pane, bin_ = ints(table, "pane"), bins_of(keys, buckets)
    groups = dense(pack([rank_integers(pane), rank_integers(bin_)], len(pane)))
    columns = [
        pa.array(np.zeros(groups.n, np.int32)),
        pa.array(pane[groups.rows]),
        pa.array(bin_[groups.rows]),
        pa.array(sum_integers(groups, sizes)),
    ]
    if rules.surveyed:
        seen = np.flatnonzero(words < _BELOW)
        inside = Groups(groups.codes[rows[seen]], groups.n)
        for function in survey.functions[1:]:
            (name,) = function.arguments
            columns += function.family.fold(inside, [values[name].take(pa.array(seen))])
    return pa.Table.from_arrays(columns, schema=survey.partial_schema)


@dataclass(frozen=True)
class SurveyState(SideState):
    """Keeps surveys as long as their panes; adds up the rows of a bin, so that there are few."""

    survey: AggregateSpec

    name: ClassVar[str] = SURVEY
    order: ClassVar[str] = "pane"

    @property
    def schema(self) -> pa.Schema:
        return self.survey.partial_schema

    @property
    def cell(self) -> int:
        return max(self.survey.window.panes // CELLS, 1)

    def first(self, frontier_us: int) -> int:
        return self.survey.window.needed_from(frontier_us)

    def merged(self, parts: Sequence[pa.Table]) -> pa.Table:
        return merge(self.survey, parts)
