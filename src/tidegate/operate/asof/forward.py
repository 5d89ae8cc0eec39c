"""Looks ahead: joins each left tuple to the earliest right tuple of its key that is not before it.

A left tuple waits until such a tuple comes, or until the tolerance is over. Its row is decided at
that instant. The rows of one instant are ordered: those with a partner first, then the others, each
in the order of the left tuples.

A waiting tuple is stored once, and segments are never changed. So a right tuple that ends the
waiting of stored tuples is stored as a **mark**. It hides the stored left tuples of its key that
are not later, until the tolerance would have dropped these anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.batch import MIN_US, ORDER, TS, ints
from tidegate.operate.asof.key import shared_codes
from tidegate.operate.asof.look import KeyedTuples, Step
from tidegate.operate.asof.spec import LEFT, OWN, RIGHT, AsOfSpec, Columns
from tidegate.operate.asof.state import read_all
from tidegate.operate.kernels.join.asof import earliest
from tidegate.operate.kernels.key_code import KeyCodes
from tidegate.operate.kernels.order import Ints, Mask, flat
from tidegate.operate.operator import InstanceWork
from tidegate.schema import TIME

MARK = "mark"


@dataclass(frozen=True)
class Forward:
    """`<=` and `<`; costs O(tuples + those that wait) in every batch."""

    stored: ClassVar[int] = LEFT
    marks: ClassVar[Columns] = ((MARK, pa.bool_()),)
    word: ClassVar[str] = "instant of decision, with a partner first, left tuple"
    keeps: ClassVar[str] = "the left tuples that wait"

    def advance(
        self, work: InstanceWork, spec: AsOfSpec, left: KeyedTuples, right: KeyedTuples
    ) -> Step:
        assert spec.tolerance_us is not None
        held = _waiting(work, spec)
        both = _together(spec, held, left)
        tables, rows = [right.keys, both.keys], [right.rows, both.rows]
        codes, (right_codes, left_codes) = shared_codes(tables, rows)
        wanted = np.where(both.has_key, left_codes, codes.n)
        times, rights = both.times, right.times
        found = earliest((times, wanted), (rights, right_codes), codes.n, spec.equal)
        if right.rows:
            found = np.where(rights[found] - times > spec.tolerance_us, -1, found)
        matched = found >= 0
        over = times < spec.needed_us(work.frontier_us)
        waits = ~matched & ~over
        waits[: held.num_rows] = False  # these are in the state already
        ended = np.zeros(codes.n, np.bool_)
        ended[left_codes[: held.num_rows][matched[: held.num_rows]]] = True
        # One mark for each key is enough, of its last right tuple: it hides all that earlier ones
        # have ended. Only keys with stored left tuples need one.
        last = np.full(codes.n, -1, np.int64)
        last[right_codes] = np.arange(right.rows)
        state = pa.concat_tables(
            [
                both.stored(spec, np.flatnonzero(waits), LEFT, mark=False),
                right.stored(spec, last[ended], RIGHT, mark=True),
            ]
        )
        put_out = matched | (over & spec.keep)
        return Step(_rows(spec, both, right, found, np.flatnonzero(put_out)), state)

    def newest(self, spec: AsOfSpec, rows: pa.Table, codes: KeyCodes) -> pa.Table:
        keys, times, mark = codes.codes, ints(rows, TS), _marks(rows)
        newest = _newest_marks(keys, times, mark, codes.n)
        waits = ~mark & ~_hidden(spec, times, newest[keys])
        return rows.filter(pa.array(waits | (mark & (times == newest[keys]))))


def _waiting(work: InstanceWork, spec: AsOfSpec) -> pa.Table:
    """The stored left tuples that still wait, in the total order."""
    stored = read_all(work, spec)
    stored = stored.filter(pa.array(ints(stored, TS) >= spec.needed_us(work.previous_us)))
    keys = [stored.column(name) for name, _ in spec.key_fields]
    codes = KeyCodes.of(keys, stored.num_rows)
    times, mark = ints(stored, TS), _marks(stored)
    newest = _newest_marks(codes.codes, times, mark, codes.n)
    waits = np.flatnonzero(~mark & ~_hidden(spec, times, newest[codes.codes]))
    order = np.lexsort([ints(stored, name)[waits] for name in reversed(ORDER)])
    return stored.take(pa.array(waits[order]))


def _marks(rows: pa.Table) -> Mask:
    marks: Mask = flat(rows.column(MARK)).to_numpy(zero_copy_only=False)
    return marks.astype(np.bool_)


def _newest_marks(keys: Ints, times: Ints, mark: Mask, count: int) -> Ints:
    newest = np.full(count, MIN_US, np.int64)
    np.maximum.at(newest, keys[mark], times[mark])
    return newest


def _hidden(spec: AsOfSpec, times: Ints, marks: Ints) -> Mask:
    """Which stored left tuples have had a partner, by the newest mark of their keys."""
    ended: Mask = marks >= times if spec.equal else marks > times
    hidden: Mask = ended & (marks != MIN_US)
    return hidden


def _together(spec: AsOfSpec, held: pa.Table, left: KeyedTuples) -> KeyedTuples:
    """The waiting left tuples and the new ones, which are all later, as one."""
    names = ["bucket", *ORDER, *(name for name, _ in spec.sides[LEFT])]
    tuples = pa.concat_tables([held.select(names), left.tuples.select(names)]).combine_chunks()
    stored = [flat(held.column(name)) for name, _ in spec.key_fields]
    keys = [pa.concat_arrays([a, b]) for a, b in zip(stored, left.keys, strict=True)]
    return KeyedTuples(tuples, keys)


def _rows(
    spec: AsOfSpec, left: KeyedTuples, right: KeyedTuples, found: Ints, rows: Ints
) -> pa.Table:
    assert spec.tolerance_us is not None
    partner = found[rows]
    alone = partner < 0
    decided = left.times[rows] + spec.tolerance_us
    decided[~alone] = right.times[partner[~alone]]
    order = np.lexsort([rows, alone, decided])
    rows, partner, alone, decided = rows[order], partner[order], alone[order], decided[order]
    tuples = left.tuples.take(pa.array(rows))
    partners = right.tuples.take(pa.array(partner, mask=alone))
    columns = {name: tuples.column(name) for name, _ in spec.sides[LEFT]}
    columns |= {name: partners.column(name) for name, _ in spec.sides[RIGHT]}
    triggers = {
        "trigger_decided": pa.array(decided),
        "trigger_alone": pa.array(alone.view(np.int8)),
    }
    triggers |= {f"trigger_{name}": tuples.column(name) for name in ORDER}
    times = {TS: pa.array(decided).view(TIME), OWN: tuples.column(TS).cast(TIME)}
    return pa.table({**times, **columns, **triggers})
