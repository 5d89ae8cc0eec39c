"""Runs an as-of join: a tuple goes to the instance of its key, by hash.

Total work does not grow with the instances. One instance has all tuples of a key, so a frequent key
is not divided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from tidegate.batch import TS
from tidegate.calendar.duration import duration_text
from tidegate.collect.trigger import TriggerOrder, triggered
from tidegate.expression.tree import Expr
from tidegate.operate.asof.key import present
from tidegate.operate.asof.look import KeyedTuples
from tidegate.operate.asof.spec import LEFT, RIGHT, AsOfSpec
from tidegate.operate.asof.state import NEAREST, NearestKeeper, write_layer
from tidegate.operate.bucket_work import rows_by_bucket
from tidegate.operate.operator import (
    Arrival,
    InstanceWork,
    MapWork,
    Operator,
    OperatorState,
    Result,
    Share,
    Traits,
    plain_names,
)
from tidegate.operate.port import Port
from tidegate.route.hash import BY_HASH
from tidegate.route.partitioner import Partitioner


@dataclass(frozen=True)
class AsOfJoin(Operator):
    """Joins each left tuple to the right tuple of its key that is nearest in time.

    `sides` has the side of each input; `shown` is the condition as the query writes it.
    """

    kind: ClassVar[str] = "asof"

    spec: AsOfSpec
    sides: tuple[int, ...]
    shown: str
    partitioner: Partitioner = BY_HASH

    @property
    def traits(self) -> Traits:
        evaluated: tuple[Expr, ...] = tuple(e for pair in self.spec.keys for e in pair)
        return Traits(deals_ahead=True, expressions=evaluated)

    @property
    def order(self) -> TriggerOrder:
        return TriggerOrder(self.spec.look.word)

    @property
    def state(self) -> OperatorState:
        kept = {NEAREST: NearestKeeper(self.spec)}
        return OperatorState(kept, "the newest tuple of a key may be of any age")

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        tuples, side = plain_names(tuples), self.sides[work.input]
        keys = self.spec.keys_of(side, tuples)
        if side == RIGHT or not self.spec.keep:
            known = present(keys, tuples.num_rows)
            if not known.all():
                tuples = tuples.filter(pa.array(known)).combine_chunks()
                keys = self.spec.keys_of(side, tuples)
        bucket = work.router(self.partitioner).buckets(keys, tuples.num_rows)
        work.spans.mark("map fold")
        return work.by_bucket(tuples.append_column("bucket", pa.array(bucket)))

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        spec = self.spec
        left, right = (
            KeyedTuples.of(spec, side, [a.rows for a in arrived if self.sides[a.input] == side])
            for side in (LEFT, RIGHT)
        )
        work.spans.mark("instance read state")
        step = spec.look.advance(work, spec, left, right)
        work.spans.mark("instance advance")
        made = write_layer(work, spec, step.state)
        work.spans.mark("instance write")
        output = tuple(_rows(port, step.rows) for port in work.ports)
        work.spans.mark("instance finish")
        touched = rows_by_bucket([left.tuples, right.tuples], work.mapping.buckets)
        return Result(output, left.rows + right.rows, {NEAREST: made}, bucket_work=touched)

    def title(self) -> str:
        return f"as-of join on {self.shown}"

    def details(self, texts: Mapping[str, str]) -> list[str]:
        far = self.spec.tolerance_us
        how_far = "any age" if far is None else f"at most {duration_text(far)} off"
        unmatched = "kept, with NULLs" if self.spec.keep else "left out"
        return [
            "by key: one task per instance, shuffle by bucket",
            f"right tuples count: {how_far}; left tuples without one are {unmatched}",
            f"keeps {self.spec.look.keeps}",
        ]


def _rows(port: Port, rows: pa.Table) -> pa.Table:
    rows = port.filtered(rows)
    return triggered({port.time: rows.column(TS)} | port.selected(rows), rows)
