"""The two ways to look for a partner: back to earlier right tuples, or ahead to later ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import pyarrow as pa

from tidegate.batch import ORDER, TS, ints
from tidegate.operate.asof.key import hashed, present
from tidegate.operate.asof.spec import GROUP, AsOfSpec, Columns
from tidegate.operate.kernels.key_code import KeyCodes
from tidegate.operate.kernels.order import Ints, Mask
from tidegate.operate.operator import InstanceWork
from tidegate.operate.tuple_rows import in_total_order


@dataclass(frozen=True)
class KeyedTuples:
    """The tuples of one side in a batch, in the total order, with the columns of their keys."""

    tuples: pa.Table
    keys: Sequence[pa.Array]

    @staticmethod
    def of(spec: AsOfSpec, side: int, tables: Sequence[pa.Table]) -> KeyedTuples:
        """Put the tables of one side, in the order of their splits, into the total order.

        Most often they are in it already; then nothing is copied.
        """
        if not tables:
            fixed = [("bucket", pa.int32()), *((n, pa.int64()) for n in ORDER)]
            empty = pa.schema([*fixed, *spec.sides[side]]).empty_table()
            return KeyedTuples(empty, spec.keys_of(side, empty))
        tuples = in_total_order(pa.concat_tables(tables).combine_chunks())
        return KeyedTuples(tuples, spec.keys_of(side, tuples))

    @property
    def rows(self) -> int:
        return int(self.tuples.num_rows)

    @property
    def times(self) -> Ints:
        return ints(self.tuples, TS)

    @property
    def has_key(self) -> Mask:
        return present(self.keys, self.rows)

    def stored(self, spec: AsOfSpec, rows: Ints, side: int, **marks: bool) -> pa.Table:
        """Some tuples as rows of the state; a tuple of the side that is not stored has NULLs."""
        schema, places = spec.state_schema, pa.array(rows)
        tuples, keys = self.tuples.take(places), [k.take(places) for k in self.keys]
        found: dict[str, pa.Array] = {name: tuples.column(name) for name in ("bucket", *ORDER)}
        found[GROUP] = pa.array(hashed(keys, len(rows)))
        found |= dict(zip((n for n, _ in spec.key_fields), keys, strict=True))
        found |= {name: pa.array(np.full(len(rows), value)) for name, value in marks.items()}
        if side == spec.look.stored:
            found |= {name: tuples.column(name) for name, _ in spec.sides[side]}
        columns = [
            found[f.name] if f.name in found else pa.nulls(len(rows), f.type) for f in schema
        ]
        return pa.table(columns, schema=pa.schema(list(schema)))


@dataclass(frozen=True)
class Step:
    """What a batch makes: output rows in order, and new rows of the state.

    `rows` has the columns of both sides, in `ts` the instant at which each row was decided, and
    the order columns of its left tuple, named `trigger_` and the name in ORDER.
    """

    rows: pa.Table
    state: pa.Table


class AsOfLook(Protocol):
    """A way to look; frozen and picklable. There are `Backward` and `Forward`."""

    stored: ClassVar[int]
    """The side whose tuples are kept from batch to batch."""
    marks: ClassVar[Columns]
    """Columns of the state besides those of a tuple."""
    word: ClassVar[str]
    """The order of the rows, in words."""
    keeps: ClassVar[str]
    """What the state has, in words."""

    def advance(
        self, work: InstanceWork, spec: AsOfSpec, left: KeyedTuples, right: KeyedTuples
    ) -> Step:
        """Decide all that the new tuples and the frontier of a batch allow."""

    def newest(self, spec: AsOfSpec, rows: pa.Table, codes: KeyCodes) -> pa.Table:
        """Stored rows, given oldest first, without those that newer ones replace or hide."""
