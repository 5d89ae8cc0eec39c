"""The seam of operators: how wide it is, and what an operator has that says nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from tidegate.operate.operator import Operator, OperatorState, Traits, divided
from tidegate.route.mapping import even


@dataclass(frozen=True)
class Silent(Operator):
    """Says nothing of itself but its kind."""

    kind: ClassVar[str] = "silent"


def test_the_seam_stays_narrow() -> None:
    """What is new about operators belongs into a value of it: traits, state, or the work."""
    members = {name for name in (*vars(Operator), *Operator.__annotations__) if name[0] != "_"}
    assert len(members) <= 15, sorted(members)


def test_an_operator_has_defaults() -> None:
    silent = Silent()  # type: ignore[abstract]
    assert silent.traits == Traits()
    assert silent.traits.waits
    assert silent.traits.limit is None
    assert silent.state.keepers == {}
    assert isinstance(silent.state.reach, str)
    assert (silent.details({}), silent.shown_figures) == ([], ())


def test_an_instance_reads_the_buckets_it_owns_where_nothing_else_is_said() -> None:
    mapping = even(8, 3)
    read = [OperatorState().reads("panes", mapping, i).numbers().tolist() for i in range(3)]
    assert sorted(bucket for found in read for bucket in found) == list(range(8))
    assert all(mapping.owners[bucket] == i for i, found in enumerate(read) for bucket in found)
    assert OperatorState().migration(0, {}, {}) is None


@pytest.mark.parametrize("owners", [[0, 0, 2, 2, 2], [2, 0, 2, 0, 2], [3, 3, 3, 3, 3]])
def test_rows_are_divided_in_their_order(owners: list[int]) -> None:
    text = pa.chunked_array([["a", None], ["c", "d", "e"]])
    table = pa.table({"row": list(range(5)), "text": text})
    parts = divided(table, np.array(owners, np.int32), 4)
    assert len(parts) == 4
    for owner, part in enumerate(parts):
        rows = [row for row in range(5) if owners[row] == owner]
        assert part.to_pylist() == table.take(pa.array(rows, pa.int64())).to_pylist()


def test_rows_are_copied_once_for_any_number_of_owners() -> None:
    """And not at all where they lie together."""
    table = pa.table({"row": np.arange(1_000)})
    before = pa.total_allocated_bytes()
    parts = divided(table, np.arange(1_000) % 100, 100)
    assert pa.total_allocated_bytes() - before <= 2 * table.nbytes
    assert len({part.column(0).chunk(0).buffers()[1].address for part in parts}) == 1
    whole = divided(table, np.arange(1_000) // 10, 100)
    first = whole[0].column(0).chunk(0).buffers()[1].address
    assert first == table.column(0).chunk(0).buffers()[1].address
