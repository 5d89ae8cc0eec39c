"""Partitioners over sliding windows of 42 and 181 tuples, as in section 3.7.2 of the dissertation.

Its queries are over tasks of a cluster: by 4 scheduling classes, and by jobs that seldom repeat.
What is compared is counted: the tuples of the fullest instance, and the parts that are merged.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from tests.driver.scene import SCHEMA, loop_of, memory
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.query.definition import StreamDef
from tidegate.query.output import single
from tidegate.route.registry import partitioner_of
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

SQL = "SELECT k, AVG(v) AS v FROM s [RANGE 60 SECONDS SLIDE 30 SECONDS] GROUP BY k"
CLASSES, JOBS = 42, 181
"""The tuples of a window of each query."""

SHARES = {
    CLASSES: np.array([0.55, 0.25, 0.15, 0.05]),
    JOBS: np.arange(1, 1_201) ** -0.3 / (np.arange(1, 1_201) ** -0.3).sum(),
}
WORKERS = (2, 4, 8)


@cache
def figures(size: int, partitioner: str, instances: int) -> dict[str, float]:
    """The means of what is told of windows; tuples are routed, one source decides."""
    keys = np.random.default_rng(11).choice(len(SHARES[size]), 20 * size, p=SHARES[size])
    rows = [(60.0 * i / size, f"k{key}", 1) for i, key in enumerate(keys)]
    stream = StreamDef("s", (), "ts", 0, None, SCHEMA)
    choices = Choices(partitioner=partitioner_of(partitioner), partial="instance")
    plan = lower(single(bind(read_script(SQL), {"s": stream})), choices=choices)
    options = {"batch_rows": 7 * size, "instances": instances, "buckets": 64}
    with TemporaryDirectory() as folder:
        summary = loop_of(plan, [memory(*rows, end=True)], Path(folder), **options).run()
    told = summary.as_dict()["windows"].values()
    return {name: of["mean"] for one in told for name, of in one["figures"].items()}


@pytest.mark.parametrize("size", SHARES)
def test_affinity_keeps_the_aggregation_cost_constant(size: int) -> None:
    """A key is at one instance in all windows that it is in; by shuffling at more and more."""
    for name in ("am", "cam"):
        costs = [figures(size, name, n)["aggregation_cost"] for n in WORKERS]
        assert costs == [1.0, 1.0, 1.0]
    shuffled = [figures(size, "shuffle", n)["aggregation_cost"] for n in WORKERS]
    assert 1 < shuffled[0] < shuffled[1] < shuffled[2]
    assert all(figures(size, "pk", n)["aggregation_cost"] > 1.03 for n in WORKERS)


def test_affinity_is_best_where_keys_seldom_repeat() -> None:
    """As even as two choices for each tuple, and less to merge: so also both together."""
    for n in WORKERS:
        pk, shuffle = (figures(JOBS, name, n) for name in ("pk", "shuffle"))
        for found in (figures(JOBS, name, n) for name in ("am", "cam")):
            assert found["largest_load"] < 1.12 * shuffle["largest_load"]
            work = found["largest_load"] + found["parts"]
            assert work < pk["largest_load"] + pk["parts"]
            assert work < shuffle["largest_load"] + shuffle["parts"]


def test_with_four_groups_affinity_merges_within_the_largest_load() -> None:
    """Where shuffling merges more parts than an instance has tuples."""
    assert all(figures(CLASSES, name, 8)["merging_within_load"] == 1 for name in ("am", "cam"))
    assert figures(CLASSES, "shuffle", 8)["merging_within_load"] == 0
