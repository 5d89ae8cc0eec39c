"""Any program of operations on declared state: the same rows and state, however it is cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.operate.process.stream import US, objects_in, run, spec_of
from tests.operate.process.test_advance import CUTS, INSTANCES, TOTAL, expected, rows_of
from tidegate.operate.process.definition import Process

OPERATIONS = 16
STATES = ("lists", "last", "queue", "done", "recent", "once")


class Program(Process):
    """Does to its state what the tuples say, and tells what comes of it."""

    output = {"told": "string"}  # noqa: RUF012

    def __init__(self) -> None:
        self.lists = self.state.map("lists")
        self.last = self.state.map("last")
        self.queue = self.state.map("queue")
        self.done = self.state.value("done", 0)
        self.recent = self.state.map("recent", ttl="3 us")
        self.once = self.state.value("once", [0], ttl=5 * US)
        self.count = 0

    def on_tuple(self, tuple: Any, keys: list[Any]) -> Iterator[dict[str, Any]]:
        self.count += 1
        if tuple.v == 0:
            self.wake(tuple.ts + 2 * US)
        for key in keys:
            self.done.update(self.done.get() + 1)
            yield {"told": f"{tuple.v} {key} {self.step(tuple.v, key)}"}

    def on_frontier(self, ts: Any) -> Iterator[dict[str, Any]]:
        yield {"told": f"timer {list(self.recent.items())} {self.once.get()} {self.count}"}
        self.recent["timer"] = self.count

    def step(self, operation: int, key: Any) -> Any:
        done = self.done.get()
        other = (key, done % 3)
        match operation:
            case 0:
                self.lists.setdefault(key, []).append(done)
                return len(self.lists)
            case 1:
                before = self.last.get(other)
                self.last[other] = {"n": done, "before": [key]}
                return before
            case 2:
                return self.last.pop(other, None), key in self.last
            case 3:
                if key in self.lists:
                    del self.lists[key][:1]
                return self.lists.get(key)
            case 4:
                self.queue[key] = self.queue.pop(key, 0) + done
                return bool(self.queue)
            case 5:
                return self.queue.popitem() if self.queue else None
            case 6:
                return [*self.queue], sorted(map(str, self.last.items()))
            case 7:
                for name in [k for k, v in self.last.items() if v["n"] % 2]:
                    del self.last[name]
                return len(self.last)
            case 8:
                found = self.last.setdefault(key, {"n": 0})
                found["n"] += 1
                return found["n"]
            case 9:
                self.last.update({other: {"n": 1}, key: {"n": 2}})
                return list(self.last.values())[-1]
            case 10:
                self.queue.clear()
                return max(self.lists, key=str, default=None)
            case 11:
                before = self.recent.get(key)
                self.recent[key] = [done]
                return before, list(self.recent)
            case 12:
                if key in self.recent:
                    self.recent[key].append(done)
                return len(self.recent), self.recent.pop(other, None)
            case 13:
                self.recent[other] = self.recent.get(other, 0) or 1
                return dict(self.recent)
            case 14:
                now = self.once.get()
                now.append(done)
                return now, self.once.exists()
        if done % 2:
            self.once.update([done])
        else:
            self.once.clear()
        return self.once.get(), self.lists.keys() & {key}


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
    state: list[pa.Table] = []
    assert run(spec_of(Program), rows, cuts, instances, TOTAL, seed, state) == expected(
        Program, rows
    )
    at_once: list[pa.Table] = []
    run(spec_of(Program), rows, state=at_once)
    lasting = STATES[:4]  # of what expires, rows may be left that no batch sees
    assert objects_in(state, names=lasting) == objects_in(at_once, names=lasting)
