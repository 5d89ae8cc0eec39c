"""Random switches change nothing: the output is that of a run that never switched.

Every kind of operator, alone and in graphs, is switched again and again, by whole mappings, moves
and numbers of instances, for all subqueries or one; and what STRETCH asks of a switch holds in
each of these runs (`docs/internals.md`, "What a switch keeps").
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.conftest import LONG
from tests.property.graphs import COUNT, ENDS, GRAPHS, TOTAL
from tests.property.steps import (
    Changes,
    Dealt,
    Graph,
    Own,
    Pairs,
    Pauses,
    Split,
    Step,
    TupleWindows,
    UnionAll,
    Windows,
)
from tests.property.switching import (
    RULES,
    Course,
    Run,
    Seen,
    many_lines,
    numbered,
    requests,
    run,
    same_tuples_in_the_same_order,
)
from tests.seed import SEED, seeds
from tidegate.elastic.handover import SHARED, STATE, WINDOW
from tidegate.elastic.request import Request, Scale
from tidegate.operate.join.chain.part import BucketPart
from tidegate.plan.physical import STRATEGIES
from tidegate.testing import STEPS

BATCHES, SWITCHES = (300, 200) if LONG else (7, 1)
"""How many batches a run has at least, and how many switches."""

BATCH_ROWS = 5

EVERY = 10_000_000
"""Rows of one batch with all there is."""

WITHIN = (20, 20), (None, None)
OPERATORS: dict[str, tuple[Step, ...]] = {
    "sliding windows": (Windows(0, 12, 4, TOTAL),),
    "tumbling windows": (Windows(0, 10, 10, COUNT),),
    "windows without a key": (Windows(0, 9, 3, ENDS),),
    "tuple windows": (TupleWindows(0, 5, 3, TOTAL),),
    "tuple windows without a key": (TupleWindows(0, 4, 2, ENDS),),
    "an equality": (Pairs(0, 1, *WITHIN, "left.k = right.k", "left.v", "right.v"),),
    "a band": (Pairs(0, 1, *WITHIN, "abs(left.v - right.v) <= 1", "left.k", "right.v"),),
    "an equality or a band": (
        Pairs(0, 1, *WITHIN, "left.k = right.k OR abs(left.v - right.v) <= 1", "left.k", "left.v"),
    ),
    "any predicate": (Pairs(0, 1, *WITHIN, "left.k <> right.v", "left.k", "right.v"),),
    "itself": (Pairs(0, 0, *WITHIN, "left.k = right.k", "left.v", "right.v"),),
    "the last tuples": (
        Pairs(0, 1, (None, None), (5, 3), "left.k = right.k", "left.v", "right.v"),
    ),
    "an own operator by key": (Own(0, Changes, "k"),),
    "an own operator with timers": (Own(0, Pauses, "k"),),
    "an own operator that sees all": (Own(0, Dealt, None),),
    **GRAPHS,
}
JOINS = tuple(n for n, s in OPERATORS.items() if isinstance(s[0], Pairs) and n not in GRAPHS)
INDEXED = tuple(name for name in JOINS if name not in ("an equality or a band", "any predicate"))
"""Joins whose stored tuples are in the order of one index."""
SCANNED = ("an equality", "a band")
"""Joins that are also made to compare every pair of a window."""

CHOSEN = [*GRAPHS] if LONG else random.Random(SEED).sample([*GRAPHS], 2)
CASES = [(name, "auto") for name in OPERATORS if name not in GRAPHS or name in CHOSEN]
CASES += [(name, "scan") for name in SCANNED]


def handovers(name: str) -> list[str]:
    """How the buckets of all subqueries of one can be handed over; in the short mode one way."""
    windows = all(not isinstance(step, TupleWindows | Own) for step in OPERATORS[name])
    every = [SHARED, STATE, *([WINDOW] if windows else [])]
    return every if LONG else [random.Random(f"{name} {SEED}").choice(every)]


HANDED = [(*case, handover) for case in CASES for handover in handovers(case[0])]


@pytest.fixture(scope="module", autouse=True)
def small_splits() -> Iterator[None]:
    """Several tasks read one source and one edge, although both are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 7)
        patch.setattr("tidegate.execute.delivery.SPAN_ROWS", 5)
        yield


def crowded(steps: tuple[Step, ...], chance: random.Random, batches: int) -> Graph:
    """A graph over two streams with rows for so many batches; all its relations are put out."""
    rows = batches * BATCH_ROWS * 2 // 3
    streams = ((many_lines(chance, rows), many_lines(chance, rows)), (many_lines(chance, rows),))
    made = sum(len(s.conditions) + 1 if isinstance(s, Split) else 1 for s in steps)
    return Graph(streams, steps, tuple(range(2, 2 + made)))


def held(found: Run) -> None:
    for rule in RULES:
        rule(found)


@pytest.mark.parametrize(("name", "method", "handover"), HANDED)
def test_random_switches_change_nothing(name: str, method: str, handover: str) -> None:
    """P2 to P6 are checked in all of these runs, and the order of the output."""
    for seed in seeds(1):
        chance = random.Random(f"{name} {handover} {seed}")
        graph = crowded(OPERATORS[name], chance, BATCHES)
        strategy = STRATEGIES[seed % len(STRATEGIES)] if name in GRAPHS else STRATEGIES[0]
        still = run(graph, Course(EVERY, strategy=strategy, method=method))
        names = [ran.job.subquery.name for ran in still.ran]
        one_number = strategy == "query-cloud" and len(names) > 1
        asked = requests(chance, () if one_number else names, 2 * BATCHES, 1.0)
        course = Course(
            BATCH_ROWS, chance.randint(1, 4), asked, strategy, method, handover=handover
        )
        found = run(graph, course)
        assert all(still.rows.values()), "nothing was compared"
        assert found.rows == still.rows
        assert found.batches >= BATCHES
        assert found.switches >= SWITCHES
        assert found.handovers[handover] > 0 or not LONG
        held(found)


def test_all_instances_observe_all_tuples_in_the_same_order() -> None:
    """P1, and the others with it, where each tuple goes to every bucket."""
    for seed in seeds(1):
        chance = random.Random(f"all tuples {seed}")
        steps = (UnionAll((0, 1)), Own(2, Seen, None))
        graph = crowded(steps, chance, BATCHES)
        graph = Graph(numbered(graph.streams), steps, (3,))
        asked = requests(chance, (), 2 * BATCHES, 1.0)
        found = run(graph, Course(BATCH_ROWS, 2, asked))
        assert found.switches >= SWITCHES
        same_tuples_in_the_same_order(found, graph)
        held(found)


def test_each_tuple_is_processed_once_by_the_owner_of_its_bucket() -> None:
    """P2 and P4, where each tuple goes to the bucket of its key."""
    chance = random.Random("once")
    steps = (UnionAll((0, 1)), Own(2, Seen, "v"))
    graph = crowded(steps, chance, BATCHES)
    graph = Graph(numbered(graph.streams), steps, (3,))
    asked = requests(chance, (), 2 * BATCHES, 1.0)
    found = run(graph, Course(BATCH_ROWS, 2, asked))
    assert found.switches >= SWITCHES
    values = [v for stream in graph.streams for source in stream for _, _, v in source]
    assert sorted(s.tuple for s in found.sights) == sorted(values)
    held(found)


@contextmanager
def large_state(affords: bool | None) -> Iterator[list[bool]]:
    """Joins keep nothing in memory, as if it were too much, and read segments of few tuples.

    Whether they search segments as they are is up to them, or told; gives each time whether others
    owned a part of one.
    """
    taken: list[bool] = []
    afforded = BucketPart.affords

    def asked(part: BucketPart, candidates: int) -> bool:
        taken.append(not part.is_whole)
        return afforded(part, candidates) if affords is None else affords

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.operate.join.chain.chain.FEW_ROWS", 1)
        patch.setattr("tidegate.operate.join.chain.stored_segment.FEW_ROWS", 1)
        patch.setattr("tidegate.operate.join.instance._most_bytes", lambda: 0)
        patch.setattr(BucketPart, "affords", asked)
        yield taken


@pytest.mark.parametrize("name", JOINS if LONG else ("a band", "itself"))
def test_switched_joins_find_the_same_in_segments_of_several_instances(name: str) -> None:
    """Whatever they have in memory: rows, and how much was compared."""
    chance = random.Random(f"{name} in parts")
    (join,) = OPERATORS[name]
    assert isinstance(join, Pairs)
    if join.within_us != (None, None):  # long enough for segments that are in all windows
        join = replace(join, within_us=(60, 60))
    graph = crowded((join,), chance, BATCHES)
    course = Course(3 * BATCH_ROWS, 3, requests(chance, (), 2 * BATCHES, 0.5))
    wanted = run(graph, course)
    for affords in (None, True, False):
        with large_state(affords) as taken:
            found = run(graph, course)
        assert found.rows == wanted.rows
        assert found.counters == wanted.counters
        assert any(taken) == (name in INDEXED)


@pytest.mark.parametrize("step", STEPS)
def test_a_switch_is_whole_whatever_step_of_its_batch_the_driver_dies_at(step: str) -> None:
    """P5: the mapping is the old one or the new one, and the output is that of any run."""
    chance = random.Random(step)
    names = [*OPERATORS] if LONG else chance.sample([n for n in OPERATORS if n not in GRAPHS], 1)
    for name in names:
        graph = crowded(OPERATORS[name], chance, 6)
        asked = {3: requests(chance, (), 2, 1.0)[1], 4: [Request(Scale(3))]}
        still = run(graph, Course(EVERY))
        way = chance.choice(handovers(name))
        found = run(graph, Course(BATCH_ROWS, 2, asked, crash=(step, 3), handover=way))
        assert found.crashed
        assert found.rows == still.rows
        assert found.switches >= 1
        held(found)
