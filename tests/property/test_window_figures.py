"""The figures of windows are those of a plain recount over the tuples that were routed."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driver.scene import Row, loop_of, memory
from tests.operate.aggregate.test_split_keys import node_of
from tests.property.test_determinism import share
from tests.property.test_partitioners import NAMES
from tidegate.driver.report.status import status_of
from tidegate.driver.report.window_log import KEPT_WINDOWS
from tidegate.operate.aggregate.operator import WindowAggregate
from tidegate.operate.aggregate.pane.fold_placement import BY_MAP
from tidegate.operate.operator import MapWork, Share
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.route.registry import partitioner_of

RANGE_S = 6
WINDOWS = {6: "[RANGE 6 SECONDS]", 2: "[RANGE 6 SECONDS SLIDE 2 SECONDS]"}
rows_of_a_source = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(["a", "b", "c", "d", None]), st.just(1)),
    max_size=40,
).map(lambda rows: sorted(rows, key=lambda row: row[0]))

Routed = list[tuple[int, int, str | None, int]]
"""Second, instance, key and number of tuples, of all that was dealt."""


@pytest.fixture(scope="module", autouse=True)
def small_splits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 7)
        yield


@pytest.fixture(scope="module")
def routed() -> Iterator[Routed]:
    """What aggregates deal while a test runs."""
    found: Routed = []
    deal = WindowAggregate.deal

    def watched(self: WindowAggregate, work: MapWork, tuples: pa.Table) -> list[Share]:
        shares = deal(self, work, tuples)
        for one in shares:
            if "pane" in one.rows.column_names:
                columns = [one.rows.column(n).to_pylist() for n in ("pane", "k0")]
                counted = self.spec.functions[0].state[0][0]
                many = [1] * one.rows.num_rows
                if self.placement.folding == BY_MAP:
                    many = one.rows.column(counted).to_pylist()
                seconds = [pane * self.spec.window.pane_us // 1_000_000 for pane in columns[0]]
                found.extend((t, one.instance, k, n) for t, k, n in zip(seconds, columns[1], many))
        return shares

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WindowAggregate, "deal", watched)
        yield found


def recounted(routed: Routed, end: int, instances: int, p: float) -> dict[str, float]:
    tuples, keys = Counter[int](), defaultdict[int, set[str | None]](set)
    for second, instance, key, count in routed:
        if end - RANGE_S <= second < end:
            tuples[instance] += count
            keys[instance].add(key)
    loads = np.array([tuples[i] for i in range(instances)], float)
    cardinalities = np.array([len(keys[i]) for i in range(instances)], float)
    places = Counter(key for held in keys.values() for key in held)
    hybrid = p * scaled(loads) + (1 - p) * scaled(cardinalities)
    return {
        "tuples": loads.sum(),
        "parts": cardinalities.sum(),
        "groups": len(places),
        "groups_split": sum(count > 1 for count in places.values()),
        "aggregation_cost": cardinalities.sum() / len(places),
        "largest_load": loads.max(),
        "merging_within_load": int(cardinalities.sum() <= loads.max()),
        "tuple_imbalance": (loads.max() - loads.mean()) / loads.mean(),
        "key_imbalance": (cardinalities.max() - cardinalities.mean()) / cardinalities.mean(),
        "hybrid_imbalance": hybrid.max() - hybrid.mean(),
    }


def scaled(loads: np.ndarray) -> np.ndarray:
    width = loads.max() - loads.min()
    return (loads - loads.min()) / width if width else np.zeros(len(loads))


def told(
    sources: Sequence[Sequence[Row]], name: str, partial: str, slide: int, **options: Any
) -> dict[str, dict[str, float]]:
    """The figures of the newest windows of a run, by their ends, of all subqueries together."""
    sql = f"SELECT k, COUNT(*) AS n FROM s {WINDOWS[slide]} GROUP BY k"
    choices = Choices(partitioner=partitioner_of(name), partial=partial)
    plan = lower(node_of(sql), choices=choices)
    memories = [memory(*rows, id=f"m{i}", end=True) for i, rows in enumerate(sources)]
    with tempfile.TemporaryDirectory() as folder:
        loop = loop_of(plan, memories, folder, **options)
        loop.run()
        found: dict[str, dict[str, float]] = {}
        for windows in status_of(loop)["newest_windows"].values():
            for window in windows:
                found.setdefault(window.pop("window_end"), {}).update(window)
    return found


@share(16, least=12)
@given(
    st.lists(rows_of_a_source, min_size=1, max_size=2),
    st.sampled_from(["hash", *NAMES]),
    st.sampled_from(["map", "instance"]),
    st.sampled_from(sorted(WINDOWS)),
    st.integers(1, 4),
    st.integers(6, 60),
)
def test_figures_are_those_of_a_recount(
    routed: Routed,
    sources: list[list[Row]],
    name: str,
    partial: str,
    slide: int,
    instances: int,
    batch_rows: int,
) -> None:
    routed.clear()
    found = told(sources, name, partial, slide, instances=instances, batch_rows=batch_rows)
    seconds = [row[0] for rows in sources for row in rows]
    ends = [
        end
        for end in range(slide, 40, slide)
        if (end - RANGE_S) % slide == 0 and any(end - RANGE_S <= t < end for t in seconds)
    ]
    assert list(found) == [f"1970-01-01T00:00:{end:02d}Z" for end in ends[-KEPT_WINDOWS:]]
    p = 0.2 if name == "lm?p=0.2" else 0.5
    for end, figures in zip(ends[-KEPT_WINDOWS:], found.values(), strict=True):
        wanted = recounted(routed, end, instances, p)
        if "merging_within_load" not in figures:  # nothing is merged
            assert figures["groups_split"] == 0
            del wanted["largest_load"], wanted["merging_within_load"]
        assert {n: figures[n] for n in wanted} == pytest.approx(wanted, rel=1e-5, abs=1e-5)
        assert figures["partition_ms"] >= 0
        assert figures["partition_bytes"] > 0 or name in ("hash", "auto"), "auto may go by hash"
