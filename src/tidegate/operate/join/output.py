"""Makes the output rows of a join from matching pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US, ORDER, TS
from tidegate.collect.pair import EARLIER, LATER, pair_order, pair_rows, sorted_pairs
from tidegate.operate.join.kind import LEFT, OWN
from tidegate.operate.join.match import MatchedPairs
from tidegate.operate.join.predicate.decide import GatheredRows, is_true
from tidegate.operate.join.search import Ints
from tidegate.operate.join.spec import JoinSpec
from tidegate.operate.join.tuple_order import order_columns
from tidegate.operate.port import Port
from tidegate.schema import TIME

_FEW_ROWS = 1_024
_ALIKE_ROWS = 65_536


def output_rows(port: Port, spec: JoinSpec, found: Sequence[MatchedPairs]) -> pa.Table:
    """The output rows of pairs, in the output order, with the hidden columns that a merge needs."""
    if not found:
        nothing = pa.table({c: pa.array([], pa.int64()) for c in ORDER})
        return pair_rows({f.name: pa.array([], f.type) for f in port.carried}, nothing, nothing)
    alike = list(_alike(spec, found))
    if len(alike) == 1:
        # To put places in order costs less than to put rows.
        pairs = alike[0].take(pair_order(alike[0].place, alike[0].earlier))
        return _shown(port, *_gathered(port, spec, pairs))[0]
    parts = [_shown(port, *part) for part in _joined([_gathered(port, spec, p) for p in alike])]
    return sorted_pairs(
        pa.concat_tables([rows for rows, _ in parts]), np.concatenate([place for _, place in parts])
    )


@dataclass(frozen=True)
class _Alike:
    """Pairs of the same two tables, with the order columns of their later and earlier tuples.

    `own` has the times that rows show.
    """

    left: GatheredRows
    right: GatheredRows
    later: Sequence[Ints]
    earlier: Sequence[Ints]
    own: Ints
    place: Ints

    def take(self, chosen: Ints) -> _Alike:
        later, earlier = ([c[chosen] for c in columns] for columns in (self.later, self.earlier))
        sides = self.left.take(chosen), self.right.take(chosen)
        return _Alike(*sides, later, earlier, self.own[chosen], self.place[chosen])


def _alike(spec: JoinSpec, found: Sequence[MatchedPairs]) -> Iterator[_Alike]:
    """Pairs of the same two tables together; a large part stays alone, to spare copying it."""
    groups: dict[tuple[int, ...], list[MatchedPairs]] = {}
    for i, pairs in enumerate(found):
        tables = (id(pairs.left.table), id(pairs.right.table))
        # Large parts are not copied together: one more part costs less than the copy.
        groups.setdefault(tables if len(pairs.place) <= _ALIKE_ROWS else (i,), []).append(pairs)
    for group in groups.values():
        sides = (group[0].left, group[0].right)
        columns = [() if rows.is_missing else order_columns(rows.table) for rows in sides]
        ordered = [_ordered(spec, p, columns) for p in group]
        later, earlier, (own,) = (
            [np.concatenate(parts) if len(parts) > 1 else parts[0] for parts in zip(*given)]
            for given in zip(*ordered, strict=True)
        )
        left, right = (
            rows[0]
            if len(rows) == 1
            else GatheredRows(rows[0].table, np.concatenate([r.places for r in rows]))
            for rows in zip(*((p.left, p.right) for p in group), strict=True)
        )
        yield _Alike(left, right, later, earlier, own, np.concatenate([p.place for p in group]))


def _ordered(
    spec: JoinSpec, pairs: MatchedPairs, columns: Sequence[Sequence[Ints]]
) -> tuple[list[Ints], list[Ints], list[Ints]]:
    """The order columns of the later tuples, those of the earlier ones, and the times shown.

    `columns` has the order columns of the tables, by side. A tuple without a partner comes after
    all pairs of the instant at which that is decided: it has the largest source and sequence.
    """
    left, right = (
        [column[rows.places] for column in mine]
        for rows, mine in zip((pairs.left, pairs.right), columns, strict=True)
    )
    later, earlier = (left, right) if pairs.later == LEFT else (right, left)
    if pairs.decided is not None:
        last = np.full(len(pairs.decided), MAX_US)
        later = [pairs.decided, last, last]
        return later, earlier, earlier[:1]
    return later, earlier, later[:1] if spec.kind.pairs else left[:1]


def _gathered(port: Port, spec: JoinSpec, pairs: _Alike) -> tuple[pa.Table, Ints]:
    """The columns that a port reads and the hidden ones; and the places of the later tuples."""
    read = port.columns
    columns = {TS: pa.array(pairs.later[0]).view(TIME)}
    if OWN in read:
        columns[OWN] = pa.array(pairs.own).view(TIME)
    for rows, side in ((pairs.left, spec.left), (pairs.right, spec.right)):
        columns |= {name: rows.column(name) for name, _ in side.columns if name in read}
    hidden = zip((*LATER, *EARLIER), (*pairs.later, *pairs.earlier), strict=True)
    return pa.table(columns | {name: pa.array(c) for name, c in hidden}), pairs.place


def _joined(parts: Sequence[tuple[pa.Table, Ints]]) -> Iterator[tuple[pa.Table, Ints]]:
    """The same rows, small parts put together: each part has a fixed cost of many rows."""
    few = [part for part in parts if len(part[1]) <= _FEW_ROWS]
    yield from (part for part in parts if len(part[1]) > _FEW_ROWS)
    if few:
        tables, places = zip(*few, strict=True)
        yield pa.concat_tables(tables).combine_chunks(), np.concatenate(places)


def _shown(port: Port, rows: pa.Table, place: Ints) -> tuple[pa.Table, Ints]:
    """The rows that a port lets pass, with its columns and the hidden ones."""
    for predicate in port.where:
        true = is_true(predicate, rows)
        if not true.all():
            rows, place = rows.filter(pa.array(true)), place[true]
    hidden = {name: rows.column(name) for name in (*LATER, *EARLIER)}
    return pa.table({port.time: rows.column(TS)} | port.selected(rows) | hidden), place
