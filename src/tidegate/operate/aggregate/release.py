"""Releases what was stored for the samples of windows that have too many groups for a budget.

A pane with more groups than the budget has rows is in no window that a sample answers, so the
priorities of its tuples are of no more use. They go at the batch that shows it, and again where the
partials of a pane are merged.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidegate.batch import ints
from tidegate.operate.aggregate.drawn import DRAWN, emptied
from tidegate.operate.aggregate.pane import AggregateSpec
from tidegate.operate.kernels.group import dense, pack, rank
from tidegate.operate.kernels.order import flat


def released(spec: AggregateSpec, partials: pa.Table) -> pa.Table:
    """Partials without the priorities of panes that have more groups than a budget has rows.

    Who sees some of the groups of a pane only may find fewer of them, and releases nothing.
    """
    for function in (f for f in spec.functions if f.definition is DRAWN):
        budget = function.parameters[0].budget_rows
        if partials.num_rows <= budget:
            continue
        pane = rank(pa.array(ints(partials, "pane")))
        keys = [rank(flat(partials.column(name))) for name, _ in spec.keys]
        groups = dense(pack([pane, *keys], partials.num_rows))
        panes = dense(pack([pane], partials.num_rows))
        crowded = np.bincount(panes.codes[groups.rows], minlength=panes.n) > budget
        if crowded.any():
            name = f"{function.name}.priority"
            empty = emptied(flat(partials.column(name)), crowded[panes.codes])
            partials = partials.set_column(partials.schema.get_field_index(name), name, empty)
    return partials
