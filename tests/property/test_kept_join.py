"""Stored tuples that a join has in memory change nothing: the same rows, segments and counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.joins import JOINED, numbered
from tests.property.predicates import queries
from tests.property.strategies import Scenario, crowded, scenarios
from tests.property.test_join_determinism import WAYS, Way, planned
from tests.property.test_kept import same
from tidegate.plan.physical import Plan


@contextmanager
def short_runs(most_bytes: int | None) -> Iterator[None]:
    """Runs of a few tuples, so that small streams have many; with little memory if told."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.operate.join.chain.chain.FEW_ROWS", 3)
        patch.setattr("tidegate.operate.join.chain.stored_segment.FEW_ROWS", 3)
        if most_bytes is not None:
            patch.setattr("tidegate.operate.join.instance._most_bytes", lambda: most_bytes)
        yield


def spread_out(plan: Plan) -> Plan:
    """The plan as where instances are on several hosts, each with a part of a grid."""
    (subquery,) = plan.subqueries
    across = replace(subquery, operator=subquery.operator.across_hosts())
    return replace(plan, subqueries=(across,))


def test_pairs_segments_and_counts_are_the_same_whatever_is_in_memory() -> None:
    found = 0

    @settings(max_examples=max(8, settings.default.max_examples // 12))
    @given(
        (scenarios(JOINED) | queries().flatmap(scenarios)).map(numbered),
        st.sampled_from(WAYS),
        st.integers(0, 2**32),
        st.none() | st.integers(0, 2_000),
        st.booleans(),
    )
    def holds(
        scenario: Scenario, way: Way, seed: int, most_bytes: int | None, remote: bool
    ) -> None:
        nonlocal found
        plan = planned(scenario, way)
        with short_runs(most_bytes):
            found += same(scenario, seed, spread_out(plan) if remote else plan)

    holds()
    assert found


@pytest.mark.parametrize("name", ["two bands", "one key or another", "the last tuples"])
def test_pairs_of_crowded_streams_are_the_same_whatever_is_in_memory(name: str) -> None:
    scenario = numbered(crowded(JOINED[name], f"{name} in memory"))
    with short_runs(3_000):
        assert same(scenario, len(name), planned(scenario, WAYS[len(name) % len(WAYS)]))
