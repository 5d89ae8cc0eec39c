"""How the work of placements grows with instances, counted in the merged parts of groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.driver.scene import loop_of, memory, plan_of
from tidegate.operate.aggregate.pane.fold_placement import BY_INSTANCE, BY_MAP
from tidegate.operate.aggregate.placement import PLACEMENTS, placement_of
from tidegate.route.hash import BY_HASH
from tidegate.route.registry import PARTITIONERS, partitioner_of

KEYS, TUPLES = 12, 40
"""How many groups each of two windows has, and how many tuples each group."""


def parts_of_group(partitioner: str, instances: int, folder: Path) -> float:
    """How many parts a group is merged from, on average; tuples are folded in the instances."""
    count = 2 * KEYS * TUPLES
    keys = np.random.default_rng(5).permutation(count) % KEYS
    rows = [(20.0 * i / count, f"k{keys[i]}", i) for i in range(count)]
    query = "SELECT k, MEDIAN(v) AS m FROM s [RANGE 10 SECONDS] GROUP BY k"
    sql = f"{query} WITH PARTITIONER {partitioner}"
    options = {"batch_rows": 300, "instances": instances, "buckets": 16}
    summary = loop_of(plan_of(sql), [memory(*rows, end=True)], folder, **options).run().as_dict()
    return summary["parts_merged"] / summary["groups_merged"] if summary["groups_merged"] else 1.0


@pytest.mark.parametrize("partitioner", ["hash", "pk", "cam", "shuffle"])
def test_the_parts_of_groups_grow_as_the_placement_says(partitioner: str, tmp_path: Path) -> None:
    found = [parts_of_group(partitioner, n, tmp_path / str(n)) for n in (2, 4, 8)]
    if partitioner == "shuffle":
        assert found == [2.0, 4.0, 8.0]
    else:
        most = 1.0 if partitioner == "hash" else 2.0
        assert all(1.0 <= parts <= most for parts in found)


@pytest.mark.parametrize("name", PARTITIONERS)
def test_every_partitioner_has_a_placement(name: str) -> None:
    asked = partitioner_of(name)
    placement = placement_of(asked, (), BY_INSTANCE)
    assert type(placement) is PLACEMENTS[asked.remembers]
    assert placement.partitioner == asked


def test_auto_settles_where_every_key_is_as_much_work() -> None:
    placement = placement_of(partitioner_of("auto"), (), BY_MAP)
    assert placement.partitioner == BY_HASH
    assert placement.details() == [
        "routed: partials, by their key; auto is hash, for a key is as much work as others"
    ]
