"""Objects of mergeable processes as states: what they see, how they are merged, what they give."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.driver.scene import SCHEMA, loop_of, memory, rows_of
from tests.query.catalog import stream
from tidegate.errors import TaskError
from tidegate.operate.aggregate.process import MergeableProcess, ObjectFamily
from tidegate.operate.aggregate.rows import unnested
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.process.definition import Process
from tidegate.plan.explain import explain
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.query.node.node import Input, StreamDef
from tidegate.query.output import Output
from tidegate.route.registry import partitioner_of
from tidegate.sink.memory import MemorySink


class Words(Process):
    """The words that were seen, each with the number of merges."""

    output = {"word": "string", "merges": "bigint"}  # noqa: RUF012
    mergeable = True

    def __init__(self) -> None:
        self.words: list[Any] = []
        self.merges = 0

    def merge(self, other: Words) -> Any:
        self.words += other.words
        self.merges += other.merges + 1

    def finish(self) -> Any:
        return [(word, self.merges) for word, _ in self.words]


class Seen(Words):
    def on_tuple(self, tuple: Any, keys: list[Any]) -> Any:
        self.words.append((tuple.word, keys))


class ByTable(Words):
    def process(self, batch: pa.Table) -> Any:
        self.words += [(word, []) for word in batch["word"].to_pylist()]


def family_of(factory: Callable[[], Process]) -> ObjectFamily:
    output = (("word", pa.string()), ("merges", pa.int64()))
    name = factory.__name__
    made = MergeableProcess(factory, name, name, ("word", "n"), ("n",), output)
    return ObjectFamily(made, (pa.string(), pa.int64()))


def folded(family: ObjectFamily, *rows: tuple[int, str, int]) -> States:
    """The states of groups, from (group, word, ts); the last row comes first in the order."""
    groups, words, ts = (list(column) for column in zip(*rows, strict=True))
    n = pa.array(groups, pa.int64())
    zeros, seq = pa.array([0] * len(ts)), pa.array(range(len(ts), 0, -1))
    codes = np.array(groups, np.int64)
    columns = [pa.array(words), n, pa.array(ts), zeros, seq]
    return family.fold(Groups(codes, max(groups) + 1), columns)


def given(family: ObjectFamily, states: States) -> list[Any]:
    return [[tuple(r.values()) for r in rows] for rows in family.finish(states).to_pylist()]


@pytest.mark.parametrize("factory", [Seen, ByTable])
def test_a_group_sees_its_tuples_in_the_total_order(factory: Callable[[], Process]) -> None:
    family = family_of(factory)
    states = folded(family, (1, "b", 5), (0, "a", 9), (1, "c", 5), (1, "d", 2), (0, "e", 8))
    assert given(family, states) == [[("e", 0), ("a", 0)], [("d", 0), ("c", 0), ("b", 0)]]


def test_keys_are_given_beside_a_tuple() -> None:
    family = family_of(Seen)
    (state,) = folded(family, (0, "a", 1))
    assert family._read(state[0].as_py()).words == [("a", [0])]


def test_states_are_merged_from_the_left_group_by_group() -> None:
    family = family_of(Seen)
    (states,) = folded(family, (0, "a", 1), (1, "b", 2), (2, "c", 3), (3, "d", 4))
    merged = family.merge(Groups(np.array([1, 0, 1, 1]), 2), [states])
    assert given(family, merged) == [[("b", 0)], [("a", 2), ("c", 2), ("d", 2)]]


def test_rows_of_lists_come_in_the_place_of_their_group() -> None:
    family = family_of(Seen)
    states = folded(family, (0, "a", 1), (0, "b", 0), (1, "c", 1))
    silent = family._written(Seen())
    lists = family.finish([pa.concat_arrays([states[0], pa.array([silent], pa.large_binary())])])
    table = pa.table({"k0": ["x", "y", "z"], "a0": lists})
    assert unnested(table, "a0").to_pydict() == {
        "k0": ["x", "x", "y"],
        "o0": ["b", "a", "c"],
        "o1": [0, 0, 0],
        "place": [0, 1, 0],
    }
    assert unnested(table.slice(2), "a0").num_rows == 0


class Hasty(Seen):
    def on_tuple(self, tuple: Any, keys: list[Any]) -> Any:
        return {"word": tuple.word, "merges": 0}


class Returning(Seen):
    def merge(self, other: Words) -> Any:
        return Seen()


class Failing(Seen):
    def on_tuple(self, tuple: Any, keys: list[Any]) -> Any:
        return tuple.absent


class Unfinished(Seen):
    def finish(self) -> Any:
        raise KeyError("gone")


class Wrong(Seen):
    def finish(self) -> Any:
        return {"word": 3.5, "merges": 1}


class Open(Seen):
    def on_tuple(self, tuple: Any, keys: list[Any]) -> Any:
        self.words = [re.compile("a")]


class Waking(Seen):
    def on_tuple(self, tuple: Any, keys: list[Any]) -> Any:
        self.wake(5)


@pytest.mark.parametrize(
    ("factory", "said"),
    [
        (Hasty, r"Hasty\.on_tuple must give no rows, .*; got dict for tuple at 1970-01-01T"),
        (Returning, r"Returning\.merge must change the object, and return None; got Seen"),
        (Failing, r"on_tuple must not raise; got AttributeError: .*absent.*, for tuple at 1970"),
        (Unfinished, r"Unfinished\.finish must not raise; got KeyError: 'gone'"),
        (Wrong, r"Wrong\.finish must give string as word; got 3\.5"),
        (Open, r"the state of Open must be made of plain values; got .*words"),
        (Waking, r"wake is not for a process that is mergeable"),
    ],
)
def test_mistakes_are_told(factory: Callable[[], Process], said: str) -> None:
    family = family_of(factory)

    def run() -> None:
        (states,) = folded(family, (0, "a", 1), (1, "b", 2))
        family.finish(family.merge(Groups(np.array([0, 0]), 1), [states]))

    with pytest.raises(TaskError, match=said) as caught:
        run()
    assert str(caught.value).startswith(f"process {factory.__name__}: ")


class Heaviest(Process):
    """The two largest values of a key, one row each, the larger first."""

    output = {"v": "bigint"}  # noqa: RUF012
    mergeable = True

    def __init__(self) -> None:
        self.values: list[int] = []

    def on_tuple(self, tuple: Any, keys: list[Any]) -> None:
        self.values = sorted([*self.values, tuple.v])[-2:]

    def merge(self, other: Heaviest) -> None:
        self.values = sorted(self.values + other.values)[-2:]

    def finish(self) -> Iterator[dict[str, int]]:
        for value in reversed(self.values):
            yield {"v": value}


ROWS = [(t / 40, f"k{t * t % 61 if t % 3 else 0}", t * 7 % 173) for t in range(300)]


def test_up_to_32_instances_and_a_limit_give_the_same_rows(tmp_path: Path) -> None:
    given = Input(StreamDef("s", ("memory:s",), "ts", 0, None, SCHEMA))
    made = stream(given).window("4 seconds", slide="2 seconds").group_by("k").process(Heaviest)
    node = made.top(40, by="v").node
    found = {}
    for name, first, then in (("hash", 1, 1), ("pk", 17, 32), ("auto", 5, 32)):
        plan = lower(node, choices=Choices(partitioner=partitioner_of(name)))
        sink, source = MemorySink(), memory(*ROWS, end=True)
        loop_of(
            plan, [source], tmp_path / name, sink, buckets=64, instances=first, batch_rows=110,
            switches={1: then},
        ).run()  # fmt: skip
        found[name] = rows_of(sink)
        said = explain([Output(None, node)], plan)
        routed = "routed: tuples; a key may be at several instances, and is merged after them"
        assert (routed in said) == (name != "hash")
    assert len(found["hash"]) > 100
    assert all(rows == found["hash"] for rows in found.values())
