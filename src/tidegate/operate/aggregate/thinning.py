"""Samples thinned while their panes are open, between the partials of a batch and their segment.

Every batch brings a sample of each group of a pane, and all of them wait until it is complete. What
they come to then is the k lowest priorities of all. So an instance remembers the k lowest that it
has written, and of what comes later it writes only what is below the highest of these: of n batches
about k (1 + ln n) rows wait in place of k n. Where it does not remember, it writes all.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.approx.array import Words
from tidegate.batch import ints
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane import AggregateSpec, merge
from tidegate.operate.aggregate.sampled import SAMPLED, rows_of, trimmed
from tidegate.operate.kernels.group import Groups, dense, pack, rank
from tidegate.operate.kernels.order import Ints, flat
from tidegate.operate.operator import InstanceWork

LOWEST = "lowest"

MOST_GROUPS = 4_096
"""With more groups in a batch, looking them up costs more than it saves."""

_ANY = np.uint64(2**64 - 1)


class Thinning:
    """What the samples of open panes have already; one for each batch of an instance."""

    def __init__(self, spec: AggregateSpec, work: InstanceWork) -> None:
        found = [f for f in spec.functions if f.definition is SAMPLED and not f.parameters[0].rate]
        self._function: Function | None = found[0] if found else None
        # Former owners do not store all that they are sent.
        if work.mapping.formers:
            self._function = None
        self._spec = spec
        self._work = work
        self._known: pa.Table | None = None

    def thinned(self, news: pa.Table) -> pa.Table:
        """Partials, in the order of their places, without what will not be in a sample."""
        function = self._function
        if function is None or news.num_rows > MOST_GROUPS:
            return news
        known: pa.Table | None = self._work.kept.take(LOWEST)
        if news.num_rows == 0:
            self._known = known
            return news
        if known is not None and known.num_rows == news.num_rows == 1:
            thin = self._of_one(function, known, news)
            if thin is not None:
                return thin
        brief = Function(function.name, function.kind, parameters=function.parameters)
        spec = AggregateSpec(self._spec.range_us, self._spec.slide_us, self._spec.keys, (brief,))
        mine = news.select(spec.partial_schema.names)
        merged, places = _joined(spec, known, mine)
        self._known = merged
        if known is None:
            return news
        (rule,) = function.parameters
        highest = _highest(flat(merged.column(f"{function.name}.priority")), rule.k)
        states = [flat(news.column(name)) for name, _ in function.state]
        rows = rows_of(states)
        below = rows.priority <= highest[places][rows.groups.codes]
        sizes = np.bincount(rows.groups.codes[below], minlength=news.num_rows).astype(np.int64)
        for (name, _), column in zip(function.state, trimmed(states, sizes), strict=True):
            news = news.set_column(news.schema.get_field_index(name), name, column)
        return news

    def _of_one(self, function: Function, known: pa.Table, news: pa.Table) -> pa.Table | None:
        """The same for one group in one pane, as most queries have it; None if it is another."""
        heads = known.column_names[:-2]
        if not known.select(heads).equals(news.select(heads)):
            return None
        (rule,) = function.parameters
        name = f"{function.name}.priority"
        before, mine = (flat(t.column(name)).flatten().to_numpy() for t in (known, news))
        words = np.sort(np.concatenate([before, mine]))
        if len(words) > rule.k > 0:
            words = words[words <= words[rule.k - 1]]
            mine = mine[mine <= words[-1]]
        lists = pa.ListArray.from_arrays(pa.array([0, len(words)], pa.int32()), pa.array(words))
        place = known.schema.get_field_index(name)
        self._known = known.set_column(place, known.schema.field(place), lists)
        ends = pa.array([0, len(mine)], pa.int32())
        for name, type_ in function.state:
            if pa.types.is_list(type_):
                held = flat(news.column(name)).flatten()[: len(mine)]
                place = news.schema.get_field_index(name)
                column = pa.ListArray.from_arrays(ends, held)
                news = news.set_column(place, news.schema.field(place), column)
        return news

    def leave(self, sealed: int) -> None:
        """Remember it for the next batch, without panes that are complete."""
        if self._known is not None and self._known.num_rows <= MOST_GROUPS:
            open_ = self._known.filter(pa.array(ints(self._known, "pane") >= sealed))
            self._work.kept.leave(LOWEST, open_, open_.nbytes)


def _highest(lists: pa.Array, k: int) -> Words:
    """The highest priority of each sample that has as many as it may."""
    sizes: Ints = pc.list_value_length(lists).to_numpy().astype(np.int64)
    words: Words = lists.flatten().to_numpy()
    highest = np.full(len(sizes), _ANY)
    full = (sizes >= k) & (sizes > 0)
    highest[full] = words[np.cumsum(sizes)[full] - 1]
    return highest


def _joined(spec: AggregateSpec, known: pa.Table | None, mine: pa.Table) -> tuple[pa.Table, Ints]:
    """Both tables merged, and where the rows of the second are then.

    From batch to batch groups are mostly the same: then nobody has to look for them.
    """
    names = spec.partial_schema.names[:-2]
    every = np.arange(mine.num_rows)
    if known is None:
        return mine, every
    if not known.select(names).equals(mine.select(names)):
        merged = merge(spec, [known, mine])
        return merged, _places(merged, mine)
    (function,) = spec.functions
    both = pa.concat_tables([known, mine])
    states = [flat(both.column(name)) for name, _ in function.state]
    groups = Groups(np.concatenate([every, every]), len(every))
    columns = [*mine.select(names).columns, *function.family.merge(groups, states)]
    return pa.Table.from_arrays(columns, schema=spec.partial_schema), every


def _places(merged: pa.Table, mine: pa.Table) -> Ints:
    """Where each row of a table is in one that has all its places, in their order."""
    names = merged.column_names[:-2]
    both = pa.concat_tables([merged.select(names), mine.select(names)])
    ranks = [rank(flat(both.column(name))) for name in names]
    return dense(pack(ranks, both.num_rows)).codes[merged.num_rows :]
