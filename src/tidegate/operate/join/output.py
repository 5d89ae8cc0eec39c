"""The output rows of a join, between matching pairs and the merge of all instances' rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.batch import ORDER, TS
from tidegate.collect.pair import pair_rows, sorted_pairs
from tidegate.operate.join.match import Pairs
from tidegate.operate.join.spec import LEFT, JoinSpec
from tidegate.operate.kernels.expression import evaluate
from tidegate.operate.port import Port
from tidegate.schema import TIME

_FEW_ROWS = 1_024


def output_rows(port: Port, spec: JoinSpec, found: Sequence[Pairs]) -> pa.Table:
    """The output rows of matching pairs, in order, with what a merge needs."""
    parts, later = [], []
    for pairs in _joined(found):
        last = pairs.left if pairs.later == LEFT else pairs.right
        past = pairs.right if pairs.later == LEFT else pairs.left
        sides = (pairs.left, spec.left), (pairs.right, spec.right)
        rows = {n: t.column(n) for t, s in sides for n, _ in s.columns if n in t.column_names}
        table = pa.table({TS: last.column(TS).cast(TIME), **rows})
        place = pairs.place
        for predicate in port.where:
            mask = pc.fill_null(evaluate(predicate, table), False)
            table, last, past = (t.filter(mask) for t in (table, last, past))
            place = place[mask.to_numpy(zero_copy_only=False)]
        named = {TS: table.column(TS)} | port.selected(table)
        parts.append(pair_rows(named, last, past))
        later.append(place)
    if not parts:
        nothing = pa.table({c: pa.array([], pa.int64()) for c in ORDER})
        return pair_rows({f.name: pa.array([], f.type) for f in port.schema}, nothing, nothing)
    return sorted_pairs(pa.concat_tables(parts), np.concatenate(later))


def _joined(found: Sequence[Pairs]) -> Iterator[Pairs]:
    """The same pairs, those of many small runs together: each part costs as much as many pairs."""
    for side in range(2):
        few = [p for p in found if p.later == side and len(p.place) <= _FEW_ROWS]
        yield from (p for p in found if p.later == side and len(p.place) > _FEW_ROWS)
        if few:
            left, right = (pa.concat_tables(t) for t in zip(*((p.left, p.right) for p in few)))
            place = np.concatenate([p.place for p in few])
            yield Pairs(left.combine_chunks(), right.combine_chunks(), side, place)
