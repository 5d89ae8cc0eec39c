"""Any program of operations on mappings: the same rows and state, however it is cut and read."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.operate.process.stream import objects_in, run, spec_of
from tests.operate.process.test_advance import CUTS, INSTANCES, TOTAL, expected, rows_of
from tidegate.operate.process.advance import Process
from tidegate.operate.process.attribute_use import read_whole

OPERATIONS = 17


class Program(Process):
    """Does to its mappings what the tuples say, and tells what comes of it."""

    output = {"told": "string"}  # noqa: RUF012

    def __init__(self) -> None:
        self.done = 0
        self.lists: defaultdict[Any, list[int]] = defaultdict(list)
        self.counts: Counter[Any] = Counter()
        self.last: dict[Any, Any] = {}
        self.queue: OrderedDict[Any, int] = OrderedDict()

    def on_tuple(self, tuple: Any, keys: list[Any]) -> Iterator[dict[str, Any]]:
        for key in keys:
            self.done += 1
            yield {"told": f"{tuple.v} {key} {self.step(tuple.v, key)}"}

    def step(self, operation: int, key: Any) -> Any:
        other = (key, self.done % 3)
        match operation:
            case 0:
                self.lists[key].append(self.done)
                return len(self.lists)
            case 1:
                self.counts[key] += 1
                self.counts.update([key, other])
                return self.counts[other]
            case 2:
                before = self.last.get(other)
                self.last[other] = {"n": self.done, "before": [key]}
                return before
            case 3:
                return self.last.pop(other, None), key in self.last
            case 4:
                if key in self.lists:
                    del self.lists[key][:1]
                return self.lists.get(key)
            case 5:
                self.queue[key] = self.queue.pop(key, 0) + self.done
                return bool(self.queue)
            case 6:
                return self.queue.popitem(last=bool(self.done % 2)) if self.queue else None
            case 7:
                return [*self.queue], sorted(map(str, self.last.items()))
            case 8:
                self.last = {k: v for k, v in self.last.items() if v["n"] % 2}
                return len(self.last)
            case 9:
                found = self.last.setdefault(key, {"n": 0})
                found["n"] += 1
                return found["n"]
            case 10:
                self.counts[key] -= 2
                del self.counts[other]
                return self.counts.most_common(2)
            case 11:
                self.lists.pop(key, None)
                return self.lists[key]
            case 12:
                self.counts.clear()
                return max(self.lists, key=str, default=None)
            case 13:
                self.last.update({other: {"n": 1}, key: {"n": 2}})
                return list(self.last.values())[-1]
            case 14:
                queue = self.queue
                queue[other] = 1
                return queue.get(key), other in queue
            case 15:
                for name in list(self.last)[::2]:
                    del self.last[name]
                return len(self.last)
        return self.lists.keys() & {key}


def test_the_program_is_read_as_it_is_asked() -> None:
    assert read_whole(Program) == {"done", "step"}


keys = st.lists(st.sampled_from(["a", "b", "c", "d", "e", None]), min_size=1, max_size=3)
tuples = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 1), keys, st.integers(0, OPERATIONS - 1)),
    max_size=40,
)


@given(tuples, CUTS, INSTANCES, st.integers(0, 99))
def test_any_program_gives_the_rows_of_its_twin(
    made: Any, cuts: list[int], instances: list[int], seed: int
) -> None:
    rows = rows_of(made)
    wanted = expected(Program, rows)
    states = []
    for lazy in (True, False):
        state: list[pa.Table] = []
        found = run(spec_of(Program, lazy=lazy), rows, cuts, instances, TOTAL, seed, state)
        assert found == wanted
        states.append(objects_in(state))
    at_once: list[pa.Table] = []
    run(spec_of(Program), rows, state=at_once)
    assert states == [objects_in(at_once)] * 2
