"""Every partitioner gives the rows that `hash` gives, to the bit, whatever happens to the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driver.scene import loop_of, memory, rows_of
from tests.operate.aggregate.test_split_keys import node_of
from tests.property.course import AT_ONCE, run
from tests.property.strategies import Scenario, crowded, scenarios
from tests.property.test_determinism import bits, share
from tests.property.test_handover import TIMED
from tests.seed import seeds
from tidegate.elastic.handover import HANDOVERS
from tidegate.elastic.policy import Decision
from tidegate.model.observation import Observation
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.plan.physical import Plan
from tidegate.route.registry import PARTITIONERS, partitioner_of
from tidegate.route.selection import PartitionerChoice
from tidegate.sink.memory import MemorySink

SEEDS = seeds(1)
NAMES = ("shuffle", "pk", "pk?d=3", "cm", "am", "am?keys=hll", "cam", "cam?d=5", "lm?p=0.2", "auto")
NAMES += ("standby",)
PARTIALS = (None, "map", "instance")


@pytest.fixture(scope="module", autouse=True)
def small_splits() -> Iterator[None]:
    """Several map tasks read one source, although the sources are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 7)
        yield


@pytest.fixture(scope="module", autouse=True)
def restless() -> Iterator[None]:
    """`auto` looks often, and changes with what it sees, in place of what would be best."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.route.auto.FIRST_LOOK", 3)
        patch.setattr(
            "tidegate.route.auto.selected",
            lambda told, costs, held: PartitionerChoice(told.tuples // 2 % 4),
        )
        yield


def plan_of(scenario: Scenario, choices: Choices | None = None) -> Plan:
    streams = scenario.streams
    return scenario.query.plan([len(s.sources) for s in streams], streams[0].disorder, choices)


def check(scenario: Scenario, name: str, partial: str | None) -> None:
    wanted = run(plan_of(scenario), scenario.streams, AT_ONCE)
    plan = plan_of(scenario, Choices(partitioner=partitioner_of(name), partial=partial))
    assert bits(run(plan, scenario.streams, scenario.course).rows) == bits(wanted.rows)


def test_all_partitioners_are_looked_at() -> None:
    assert {name.partition("?")[0] for name in NAMES} | {"hash"} == set(PARTITIONERS)


@share(15, least=10)
@given(scenarios(TIMED), st.sampled_from(["instance", None]), st.sampled_from(HANDOVERS))
def test_windows_do_not_depend_on_what_auto_chooses(
    scenario: Scenario, partial: str | None, handover: str
) -> None:
    """One source or several, one task or several: some windows are merged, some are not."""
    check(replace(scenario, course=replace(scenario.course, handover=handover)), "auto", partial)


@share(50, least=24)
@given(
    scenarios(TIMED),
    st.sampled_from(NAMES),
    st.sampled_from(PARTIALS),
    st.sampled_from(HANDOVERS),
)
def test_windows_do_not_depend_on_the_partitioner(
    scenario: Scenario, name: str, partial: str | None, handover: str
) -> None:
    check(replace(scenario, course=replace(scenario.course, handover=handover)), name, partial)


def test_crowded_streams_do_not_depend_on_the_partitioner() -> None:
    count = 0
    for seed in SEEDS:
        for place, query in enumerate(TIMED):
            scenario = crowded(TIMED[query], f"{query} partitioned {seed}")
            check(scenario, NAMES[(seed + place) % len(NAMES)], PARTIALS[(seed + place) % 3])
            count += 1
    assert count > 7


ROWS = [(t / 40, f"k{t * t % 61 if t % 3 else 0}", t % 17) for t in range(300)]
MIXED = (
    "SELECT k, SUM(v) AS s, MEDIAN(v) AS m, COUNT(*) AS n "
    "FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS] GROUP BY k ORDER BY n DESC LIMIT 40"
)


def many(name: str, folder: Path, instances: int, batch_rows: int, **switches: Any) -> list[Any]:
    plan = lower(node_of(MIXED), choices=Choices(partitioner=partitioner_of(name)))
    sink, source = MemorySink(), memory(*ROWS, end=True)
    loop_of(
        plan, [source], folder, sink, buckets=64, instances=instances, batch_rows=batch_rows,
        **switches,
    ).run()  # fmt: skip
    return rows_of(sink)


@dataclass(frozen=True)
class Allowing:
    """Lets keys be split after some batches, and no more after others."""

    after: Sequence[bool]
    name: str = "allowing"

    def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
        return Decision(splits=self.after[observed[0].batch % len(self.after)])


@share(20, least=12)
@given(
    st.lists(st.booleans(), min_size=1, max_size=8),
    st.integers(7, 90),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(0, 12),
)
def test_windows_do_not_depend_on_when_keys_may_be_split(
    tmp_path_factory: pytest.TempPathFactory,
    after: list[bool],
    batch_rows: int,
    first: int,
    then: int,
    stop: int,
) -> None:
    """Allowed and taken back at any batch, with a switch, and a restart that begins without it."""
    expected = many("hash", tmp_path_factory.mktemp("hash"), 1, 1000)
    plan = lower(node_of(MIXED), choices=Choices(partitioner=partitioner_of("standby")))
    folder, sink = tmp_path_factory.mktemp("standby"), MemorySink()
    options = {
        "buckets": 16, "batch_rows": batch_rows, "switches": {3: then}, "policy": Allowing(after)
    }  # fmt: skip
    source = memory(*ROWS, end=True)
    loop = loop_of(plan, [source], folder, sink, instances=first, **options)
    for _ in range(stop):
        loop.step()
    loop.close()
    loop_of(plan, [memory(*ROWS, end=True)], folder, sink, instances=None, **options).run()
    assert rows_of(sink) == expected


def test_up_to_32_instances_give_the_same_rows(tmp_path: Path) -> None:
    expected = many("hash", tmp_path / "hash", 1, 1000)
    assert len(expected) > 100
    ways = ("shuffle", 17, 32), ("pk", 1, 5), ("cam", 32, 3), ("lm", 31, 32), ("auto", 5, 32)
    for name, first, then in ways:
        assert many(name, tmp_path / name, first, 110, switches={1: then}) == expected, name
