"""Checks a mergeable process: its rows must not depend on which object has seen which tuples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.batch import ORDER, TS
from tidegate.operate.aggregate.process import MergeableProcess, ObjectFamily
from tidegate.operate.process.definition import Process
from tidegate.query.node.process import class_name, output_of
from tidegate.query.node.window_process import mergeable_of
from tidegate.testing.aggregate import Check, run_check

_SORT = " Sort what finish() takes from a dict or a set."


def check_process(
    factory: Callable[[], Process],
    rows: pa.Table | Sequence[Mapping[str, Any]],
    *,
    keys: str | Sequence[str] = (),
    tries: int = 300,
    seed: int = 0,
) -> None:
    """Raise AssertionError if rows of a process depend on how tuples are divided and merged.

    `rows` are tuples of one key and window; include awkward ones. A column `ts` has their times;
    without it they are a second apart. `keys` are the columns of the key. Each of `tries` picks
    tuples at random, by the seed. One object sees them all; several others see parts of them, and
    their states are written, read again and merged in a tree. The message has the fewest rows for
    which a search found the mistake.
    """
    tried = mergeable_of(factory)
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows))
    if table.num_rows == 0:
        raise ValueError("check_process: at least one tuple must be given; got none.")
    names = [name for name in table.column_names if name != TS]
    chosen = (keys,) if isinstance(keys, str) else tuple(keys)
    for key in chosen:
        values = table.column(key).to_pylist()
        if any(value != values[0] for value in values):
            raise ValueError(f"check_process: tuples must be of one key; got several in {key}.")
    name = class_name(factory)
    process = MergeableProcess(factory, name, name, tuple(names), chosen, output_of(tried))
    family = ObjectFamily(process, tuple(table.schema.field(name).type for name in names))
    cells = [table.column(name).combine_chunks() for name in names]
    check = Check(
        family,
        pa.table([*cells, *_order(table)], [*names, *ORDER]),
        in_order=False,
        what=f"process {name}",
        shown=len(names),
        remedy=_SORT,
    )
    run_check(check, tries, seed)


def _order(table: pa.Table) -> list[pa.Array]:
    """The columns of the total order, as if one source had given the tuples in this order."""
    count = table.num_rows
    ts = pa.array(np.arange(count) * 1_000_000)
    if TS in table.column_names:
        ts = table.column(TS).combine_chunks().cast(pa.timestamp("us")).cast(pa.int64())
    return [ts, pa.array(np.zeros(count, np.int64)), pa.array(np.arange(count))]
