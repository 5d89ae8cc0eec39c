"""What the tuples of each pane are like, between map tasks and who decides which are trimmed.

A survey counts tuples by the hash of their key, in bins that are parts of buckets, and of one in
eight of them, chosen by priority, keeps what gives the variance of their values. That is a CountMin
sketch of one row: rare groups share bins, frequent ones stand out (section 7.4.3.1). All of it can
be added up in any order, to the bit, so it does not depend on batches and tasks. It goes to all
instances, one of which stores it; when a window closes all of them know all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.approx.array import Words
from tidegate.approx.priority import priorities
from tidegate.batch import ints
from tidegate.operate.aggregate.balanced.balancing import Balancing
from tidegate.operate.aggregate.pane import AggregateSpec, merge, needed_from
from tidegate.operate.keeper import CELLS, OrderHorizon
from tidegate.operate.kernels.group import Groups, dense, pack, rank_integers
from tidegate.operate.kernels.order import Ints, canonical, flat
from tidegate.operate.kernels.total import sum_integers
from tidegate.operate.operator import InstanceWork
from tidegate.route.bucket import hash_of
from tidegate.route.survey import LEAST_BINS
from tidegate.state.compaction import DEAD_SHARE, by_bucket
from tidegate.state.segment import Segment, read_segment, write_segment

SURVEY = "survey"
"""What the segments hold, by the name that they have below the operator in a manifest."""

_BELOW = np.uint64(2**61)
"""Of which priorities values are looked at: one in eight."""

_PARTS = 16
"""How many parts of a survey are kept apart."""

_ORDER = "pane"


def bins_of(keys: Sequence[pa.Array], buckets: int) -> Ints:
    """The bin of each row of keys; the bucket of a bin is its rest by the number of buckets."""
    bins: Ints = (hash_of(keys) % np.uint64(bins_in(buckets))).astype(np.int64)
    return bins


def bins_in(buckets: int) -> int:
    """How many bins there are."""
    return buckets * max(LEAST_BINS // buckets, 1)


def survey_partials(
    rules: Balancing, spec: AggregateSpec, partials: pa.Table, buckets: int
) -> pa.Table:
    """The survey of tuples that map tasks have put into lists; O(partials), and the values seen."""
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
    """The survey of tuples that are routed as they are."""
    count = rows.num_rows
    words = priorities(rules.seed, ints(rows, "src"), ints(rows, "seq"))
    values = {name: flat(rows.column(name)) for name, _ in rules.surveyed}
    return _survey(
        rules, spec, rows, buckets, np.ones(count, np.int64), np.arange(count), words, values
    )


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
    """The survey of a table with panes and keys, of `sizes` tuples a row.

    `rows` has the row of each tuple, `words` its priority and `values` its arguments.
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
class SurveyKeeper:
    """Surveys, which go with their panes."""

    survey: AggregateSpec
    order = _ORDER
    dead_share = DEAD_SHARE
    grouped = True

    @property
    def columns(self) -> list[str]:
        return list(self.survey.partial_schema.names)

    @property
    def cell(self) -> int:
        return max(self.survey.range_us // self.survey.pane_us // CELLS, 1)

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> OrderHorizon:
        return OrderHorizon(_ORDER, needed_from(self.survey, frontier_us))

    def arrange(self, rows: pa.Table) -> pa.Table:
        """One row for a bin of a pane, so that long panes do not have many."""
        return by_bucket(merge(self.survey, [rows]), self.order)

    def kin(
        self, segments: Sequence[Segment], owners: Sequence[int], since: int
    ) -> list[int | None]:
        return [0] * len(segments)


def known_survey(
    work: InstanceWork, survey: AggregateSpec, arrived: Sequence[pa.Table]
) -> list[pa.Table]:
    """All that was counted of the panes of open windows, this batch included, in several parts."""
    held: list[pa.Table] | None = work.kept.take(SURVEY)
    if held is None:
        first = needed_from(survey, work.previous_us)
        live = [s for s in work.state.get(SURVEY, ()) if s.high >= first]
        names = survey.partial_schema.names
        held = [read_segment(work.store, s, None, names) for s in live]
    known = [*held, *arrived]
    first = needed_from(survey, work.frontier_us)
    lasting = [part for part in known if part.num_rows and ints(part, _ORDER).max() >= first]
    # Merging costs, and is done seldom; so what waits stays small.
    if len(lasting) > _PARTS:
        lasting = [_lasting(merge(survey, lasting), survey, work)]
    work.kept.leave(SURVEY, lasting, sum(part.nbytes for part in lasting))
    return known


def write_survey(
    work: InstanceWork, survey: AggregateSpec, arrived: Sequence[pa.Table]
) -> tuple[Segment, ...]:
    """What splits have counted, as one segment; all instances know it, and one of them writes."""
    if not arrived or work.instance != work.mapping.owners[0]:
        return ()
    rows = by_bucket(_lasting(merge(survey, arrived), survey, work), _ORDER)
    if not rows.num_rows:
        return ()
    return (write_segment(work.store, f"{work.name}-survey", rows, order=_ORDER, tag=0),)


def _lasting(rows: pa.Table, survey: AggregateSpec, work: InstanceWork) -> pa.Table:
    first = needed_from(survey, work.frontier_us)
    return rows.filter(pa.array(ints(rows, _ORDER) >= first))
