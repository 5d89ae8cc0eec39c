"""What the predicate of a join says of candidates: between the search and the pairs that match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.batch import TS
from tidegate.expression.tree import Call, Column, Expr, columns_of
from tidegate.operate.join.predicate import asked
from tidegate.operate.join.spec import JoinSpec
from tidegate.operate.kernels.expression import evaluate

Ints = npt.NDArray[np.int64]

_WIDE_BYTES = 256
"""Values of so many bytes are compared by number where rows are in several pairs each."""


@dataclass(frozen=True)
class Rows:
    """Rows of a table by their places, columns gathered when asked for."""

    table: pa.Table
    places: Ints

    def columns(self, names: Sequence[str], kept: Ints) -> pa.Table:
        """Some columns of some of the rows."""
        return self.table.select(names).take(pa.array(self.places[kept]))

    def is_wide(self, name: str, kept: Ints) -> bool:
        """Whether gathering a column of text copies far more than there is of it."""
        column = self.table.column(name)
        rows = max(self.table.num_rows, 1)
        return len(kept) > rows and bool(column.nbytes > _WIDE_BYTES * rows)


def true_of(spec: JoinSpec, left: Rows, right: Rows) -> Ints:
    """Which pairs fulfil the predicate, conjunct by conjunct on what is left."""
    kept: Ints = np.arange(len(left.places))
    for conjunct in spec.predicate:
        names = columns_of(conjunct)
        same = _same_text(conjunct, left, right, kept)
        if same is not None:
            kept = kept[same]
            continue
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


def _same_text(conjunct: Expr, left: Rows, right: Rows, kept: Ints) -> npt.NDArray[np.bool_] | None:
    """An equality of long texts, each read once however many pairs it is in.

    None for other conjuncts, and where the texts of the pairs are not much to gather.
    """
    if not isinstance(conjunct, Call) or conjunct.op != "eq":
        return None
    names = [arg.name for arg in conjunct.args if isinstance(arg, Column)]
    if len(names) < 2 or not pa.types.is_string(conjunct.args[0].type):
        return None
    sides = []
    for rows in (left, right):
        name = next((n for n in names if n in rows.table.column_names), None)
        if name is None or not rows.is_wide(name, kept):
            return None
        places, at = np.unique(rows.places[kept], return_inverse=True)
        texts = rows.table.column(name)
        sides.append((texts if len(places) == len(texts) else texts.take(pa.array(places)), at))
    (lefts, at_left), (rights, at_right) = sides
    numbers = pa.chunked_array([*lefts.chunks, *rights.chunks]).dictionary_encode()
    codes = numbers.combine_chunks().indices.fill_null(-1).to_numpy()
    one, other = codes[at_left], codes[len(lefts) + at_right]
    return np.asarray((one == other) & (one >= 0))
