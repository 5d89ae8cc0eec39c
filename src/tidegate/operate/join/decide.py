"""What the predicate of a join says of candidates: between the search and the pairs that match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.batch import TS
from tidegate.expression.tree import columns_of
from tidegate.operate.join.predicate import asked
from tidegate.operate.join.spec import JoinSpec
from tidegate.operate.kernels.expression import evaluate

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """Rows of a table by their places, columns gathered when asked for."""

    table: pa.Table
    places: Ints

    def columns(self, names: Sequence[str], kept: Ints) -> pa.Table:
        """Some columns of some of the rows."""
        return self.table.select(names).take(pa.array(self.places[kept]))

    def taken(self, kept: Ints) -> pa.Table:
        """Some of the rows."""
        return self.table.take(pa.array(self.places[kept]))


def true_of(spec: JoinSpec, left: Rows, right: Rows) -> Ints:
    """Which pairs fulfil the predicate, conjunct by conjunct on what is left."""
    kept: Ints = np.arange(len(left.places))
    for conjunct in spec.predicate:
        names = columns_of(conjunct)
        on_left = [n for n in names if n in left.table.column_names]
        on_right = [n for n in names if n not in on_left]
        parts = [
            rows.columns(mine, kept) for rows, mine in ((left, on_left), (right, on_right)) if mine
        ]
        columns = {n: part.column(n) for part in parts for n in part.column_names}
        rows = pa.table(columns) if columns else pa.table({TS: pa.array(kept)})
        truth = pc.fill_null(evaluate(conjunct, rows), False)
        kept = kept[truth.to_numpy(zero_copy_only=False)]
        if not len(kept):
            return kept
    if spec.function is not None:
        rows_of = [
            r.columns([n for n, _ in s.columns], kept)
            for r, s in ((left, spec.left), (right, spec.right))
        ]
        kept = kept[asked(spec.function, rows_of[0], rows_of[1])]
    return kept
