"""Drops rows of a batch's samples that cannot be in the sample of the whole pane.

Every batch brings a sample of each group, and all of these wait until the pane is complete. Then
they are merged into one sample of k rows. So an instance remembers the priorities that it has
written. Of a later batch it writes only rows that would be in the sample of all rows so far: after
n batches about k (1 + ln n) rows wait, not k n. If it remembers nothing, it writes all rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidegate.approx.sample import depths
from tidegate.batch import ints
from tidegate.operate.aggregate.function import Function, merge_rows
from tidegate.operate.aggregate.pane.pane import AggregateSpec, merge
from tidegate.operate.aggregate.sample.quantile_sample import RANKED
from tidegate.operate.aggregate.sample.sample_state import SAMPLED, chosen_rows
from tidegate.operate.kernels.group import Groups, dense, pack, rank
from tidegate.operate.kernels.lists import list_sizes
from tidegate.operate.kernels.order import Ints, flat
from tidegate.operate.operator import InstanceWork

DEEPEST = "deepest"

MOST_GROUPS = 4_096
"""With more groups in a batch, finding them costs more than it saves."""


class Thinning:
    """The samples of open panes so far, without arguments; one object for a batch of an instance.

    Call `thinned` first, and `leave` at the end of the batch.
    """

    def __init__(self, spec: AggregateSpec, work: InstanceWork) -> None:
        found = [f for f in spec.functions if f.definition in (SAMPLED, RANKED)]
        # Former owners do not store all that they are sent, so they must not count on it.
        self._functions: list[Function] = [] if work.mapping.formers else found
        brief = tuple(_brief(function) for function in found)
        self._spec = AggregateSpec(spec.window, spec.keys, brief)
        self._work = work
        self._known: pa.Table | None = None

    def thinned(self, news: pa.Table) -> pa.Table:
        """Partials without the rows that cannot be in a sample; sorted by pane and keys."""
        if not self._functions or news.num_rows > MOST_GROUPS:
            return news
        known: pa.Table | None = self._work.kept.take(DEEPEST)
        if news.num_rows == 0:
            self._known = known
            return news
        mine = news.select(self._spec.partial_schema.names)
        if known is None:
            self._known = mine
            return news
        self._known, places = _joined(self._spec, known, mine)
        for function in self._functions:
            least = _least_depths(flat(self._known.column(f"{function.name}.priority")))[places]
            states = [flat(news.column(name)) for name, _ in function.state]
            depth = depths(states[1].flatten().to_numpy())
            deep = depth >= np.repeat(least, list_sizes(states[1]))
            if deep.all():
                continue
            for (name, _), column in zip(function.state, chosen_rows(states, deep), strict=True):
                news = news.set_column(news.schema.get_field_index(name), name, column)
        return news

    def leave(self, sealed: int) -> None:
        """Leave the samples for the next batch, without those of complete panes."""
        if self._known is not None and self._known.num_rows <= MOST_GROUPS:
            open_ = self._known.filter(pa.array(ints(self._known, "pane") >= sealed))
            self._work.kept.leave(DEEPEST, open_, open_.nbytes)


def _brief(function: Function) -> Function:
    """The function that samples the same tuples without their arguments."""
    (rule,) = function.parameters
    sampling = rule.sampling if function.definition is RANKED else rule
    return Function(function.name, SAMPLED.name, parameters=(sampling,))


def _least_depths(lists: pa.Array) -> Ints:
    """The least depth in each sample; 0 for an empty one."""
    sizes = list_sizes(lists)
    least = np.zeros(len(sizes), np.int64)
    there = sizes > 0
    if there.any():
        starts = (np.cumsum(sizes) - sizes)[there]
        least[there] = np.minimum.reduceat(depths(lists.flatten().to_numpy()), starts)
    return least


def _joined(spec: AggregateSpec, known: pa.Table, mine: pa.Table) -> tuple[pa.Table, Ints]:
    """Merge both tables; gives the merged one, and the places of the second's rows in it.

    From batch to batch the groups are mostly the same. Then no search is needed.
    """
    names = spec.partial_schema.names[: 2 + len(spec.keys)]
    if not known.select(names).equals(mine.select(names)):
        merged = merge(spec, [known, mine])
        return merged, _places(merged.select(names), mine.select(names))
    every = np.arange(mine.num_rows)
    groups = Groups(np.concatenate([every, every]), len(every))
    merged = merge_rows(spec.functions, groups, pa.concat_tables([known, mine]))
    columns = [*mine.select(names).columns, *merged]
    return pa.Table.from_arrays(columns, schema=spec.partial_schema), every


def _places(merged: pa.Table, mine: pa.Table) -> Ints:
    """The place of each row in a table that has all of its keys and is sorted by them."""
    both = pa.concat_tables([merged, mine])
    ranks = [rank(flat(both.column(name))) for name in merged.column_names]
    return dense(pack(ranks, both.num_rows)).codes[merged.num_rows :]
