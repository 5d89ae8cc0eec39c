"""Hashes the keys by which the rows of a large table are found."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.expression.tree import Expr, exact_text, renamed
from tidegate.operate.asof.key import present
from tidegate.operate.join.spec import EQUAL, PairInterval
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.operate.kernels.order import flat
from tidegate.operate.table_join.lookup import TableLookup
from tidegate.route.bucket import Hashes, hash_of


@dataclass(frozen=True)
class TableKey:
    """A key: expressions over the columns of a table, compared with values of the same types."""

    values: tuple[Expr, ...]

    @property
    def name(self) -> str:
        """A name for files: the same in every process for the same expressions only."""
        text = "\n\n".join(map(exact_text, self.values))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def hashes(self, rows: pa.Table) -> Hashes:
        return hash_of([flat(evaluate(value, rows)) for value in self.values])


def key_of(lookup: TableLookup) -> TableKey | None:
    """The key by which a lookup finds rows; None where it has no equality of one type."""
    own, compared = dict(lookup.reads), _compared(lookup)
    return TableKey(tuple(renamed(i.right_value, own) for i in compared)) if compared else None


def hashes_of_tuples(lookup: TableLookup, tuples: pa.Table) -> Hashes:
    """The hashes of the keys that tuples ask for, distinct and ascending.

    Keys with a NULL that equals nothing are left out.
    """
    compared = _compared(lookup)
    values = [flat(evaluate(i.left_value, tuples)) for i in compared]
    strict = [v for v, i in zip(values, compared, strict=True) if not i.null_safe]
    found: Hashes = np.sort(hash_of(values)[present(strict, tuples.num_rows)])
    distinct: Hashes = found[np.append(True, found[1:] != found[:-1])[: len(found)]]
    return distinct


def _compared(lookup: TableLookup) -> list[PairInterval]:
    return [i for i in lookup.intervals if i.kind == EQUAL and _is_one_type(i)]


def _is_one_type(interval: PairInterval) -> bool:
    return bool(interval.left_value.type == interval.right_value.type)
