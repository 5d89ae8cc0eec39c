"""Releases the priorities of samples in panes that have too many groups for a budget.

Each group of a window takes at least one row of the budget. If the groups of a pane alone take more
rows than the budget has, no window over the pane can be answered from a sample, because its groups
only grow. So the priorities in that pane are useless. They are removed in the batch that shows it,
and again where the partials of a pane are merged.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidegate.batch import ints
from tidegate.operate.aggregate.pane.pane import AggregateSpec
from tidegate.operate.aggregate.sample.sample_pool import DRAWN, Drawing, emptied
from tidegate.operate.kernels.group import Groups, dense, pack, rank, rank_integers
from tidegate.operate.kernels.lists import list_sizes
from tidegate.operate.kernels.order import Ints, flat
from tidegate.operate.kernels.sum.total import sum_integers


def released(spec: AggregateSpec, partials: pa.Table, *, splits_keys: bool = False) -> pa.Table:
    """Remove the priorities of panes whose groups take more rows than the budget has.

    An instance that sees only some groups of a pane counts fewer, and may release nothing: that is
    safe. A row is a group, unless the placement `splits_keys`; then it counts groups, which costs
    a pass. Panes that were released before are not counted again.
    """
    for function in (f for f in spec.functions if f.definition is DRAWN):
        drawing: Drawing = function.parameters[0]
        name, tuples = f"{function.name}.priority", ints(partials, f"{function.name}.tuples")
        if int(tuples.sum()) <= drawing.budget_rows:
            continue
        priority = flat(partials.column(name))
        panes = dense(rank_integers(ints(partials, "pane")))
        drawable = np.bincount(panes.codes[list_sizes(priority) > 0], minlength=panes.n) > 0
        taken = _taken(panes.codes, panes.n, tuples, drawing)
        crowded = (taken > drawing.budget_rows) & drawable
        if splits_keys and crowded.any():
            crowded &= (
                _taken_of_groups(spec, partials, panes, tuples, drawing) > drawing.budget_rows
            )
        if crowded.any():
            empty = emptied(priority, crowded[panes.codes])
            partials = partials.set_column(partials.schema.get_field_index(name), name, empty)
    return partials


def _taken(pane: Ints, panes: int, tuples: Ints, drawing: Drawing) -> Ints:
    """How many rows of the budget the groups of each pane take at least."""
    rows = np.minimum(np.maximum(tuples, 1), drawing.least)
    return np.bincount(pane, rows, panes).astype(np.int64)


def _taken_of_groups(
    spec: AggregateSpec, partials: pa.Table, panes: Groups, tuples: Ints, drawing: Drawing
) -> Ints:
    """The same where a group may have several rows, in different buckets."""
    keys = [rank(flat(partials.column(name))) for name, _ in spec.keys]
    groups = dense(pack([panes.ranked, *keys], partials.num_rows))
    whole = sum_integers(groups, tuples)
    return _taken(panes.codes[groups.rows], panes.n, whole, drawing)
