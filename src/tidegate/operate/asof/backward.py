"""Looks back: joins each left tuple to the latest earlier right tuple of its key, at its own time.

A batch has all tuples of an instant, and every stored tuple is earlier than those. So the newest
right tuple of each key is all that a batch has to know of those before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.batch import ORDER, TS, ints
from tidegate.operate.asof.key import shared_codes
from tidegate.operate.asof.look import KeyedTuples, Step
from tidegate.operate.asof.spec import LEFT, RIGHT, AsOfSpec, Columns
from tidegate.operate.asof.state import read_keys
from tidegate.operate.kernels.join.asof import latest
from tidegate.operate.kernels.key_code import KeyCodes
from tidegate.operate.kernels.order import Ints
from tidegate.operate.operator import InstanceWork
from tidegate.schema import TIME


@dataclass(frozen=True)
class Backward:
    """`>=` and `>`; costs O(tuples), and a search of the state for each key of a left tuple."""

    stored: ClassVar[int] = RIGHT
    marks: ClassVar[Columns] = ()
    word: ClassVar[str] = "the left tuple"
    keeps: ClassVar[str] = "the newest right tuple of each key"

    def advance(
        self, work: InstanceWork, spec: AsOfSpec, left: KeyedTuples, right: KeyedTuples
    ) -> Step:
        tables, rows = [right.keys, left.keys], [right.rows, left.rows]
        codes, (right_codes, left_codes) = shared_codes(tables, rows)
        wanted = np.where(left.has_key, left_codes, codes.n)
        held, held_codes = _held(work, spec, left, wanted, codes.n)
        times = np.concatenate([ints(held, TS), right.times])
        keys = np.concatenate([held_codes, right_codes])
        found, last = latest((left.times, wanted), (times, keys), codes.n, spec.equal)
        # The newest one decides: where it is too far off, every older one is, too.
        if spec.tolerance_us is not None and len(times):
            far = left.times - times[found] > spec.tolerance_us
            found = np.where(far, -1, found)
        fresh = last[last >= held.num_rows] - held.num_rows
        state = right.stored(spec, fresh, RIGHT)
        return Step(_rows(spec, left, found, held, right), state)

    def newest(self, spec: AsOfSpec, rows: pa.Table, codes: KeyCodes) -> pa.Table:
        order = np.lexsort([*(ints(rows, name) for name in reversed(ORDER)), codes.codes])
        ranked = codes.codes[order]
        last = np.append(ranked[1:] != ranked[:-1], True)[: len(order)]
        return rows.take(pa.array(order[last]))


def _held(
    work: InstanceWork, spec: AsOfSpec, left: KeyedTuples, codes: Ints, count: int
) -> tuple[pa.Table, Ints]:
    """The stored right tuples of the left tuples' keys, oldest first, with the codes of keys."""
    row = np.full(count + 1, -1, np.int64)
    row[codes] = np.arange(left.rows)
    asked = np.flatnonzero(row[:count] >= 0)
    places = pa.array(row[asked])
    keys = [key.take(places) for key in left.keys]
    held = read_keys(work, spec, ints(left.tuples, "bucket")[row[asked]].astype(np.int64), keys)
    stored = [held.column(name) for name, _ in spec.key_fields]
    one_of_each = KeyCodes.of(keys, len(asked))
    found = np.append(asked[one_of_each.rows], -1)[one_of_each.find(stored, held.num_rows)]
    known = found >= 0  # the state is searched by hash: the other rows have the same hash only
    return (held, found) if known.all() else (held.filter(pa.array(known)), found[known])


def _rows(
    spec: AsOfSpec, left: KeyedTuples, found: Ints, held: pa.Table, right: KeyedTuples
) -> pa.Table:
    tuples, matched = left.tuples, found >= 0
    if not spec.keep and not matched.all():
        tuples, found, matched = tuples.filter(pa.array(matched)), found[matched], matched[matched]
    names = [name for name, _ in spec.sides[RIGHT]]
    rights = pa.concat_tables([held.select(names), right.tuples.select(names)]).combine_chunks()
    partners = rights.take(pa.array(found, mask=~matched))
    columns = {name: tuples.column(name) for name, _ in spec.sides[LEFT]}
    columns |= {name: partners.column(name) for name in names}
    triggers = {f"trigger_{name}": tuples.column(name) for name in ORDER}
    return pa.table({TS: tuples.column(TS).cast(TIME), **columns, **triggers})
