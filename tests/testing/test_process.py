"""The witness to calls: it changes nothing, and sees calls that overlap or go back."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.operate.process.stream import Seen, Silence, TimedByBatch, objects_in, run, spec_of
from tidegate.batch import MAX_US
from tidegate.operate.process.definition import Process
from tidegate.testing.process import Visit, Watched, disorder, visits

ROWS = [
    {"ts": i // 2, "src": i % 2, "seq": i, "k": ["a", "b", "c"][: i % 4], "v": i % 3}
    for i in range(20)
]


@pytest.mark.parametrize("factory", [Seen, Silence, TimedByBatch])
def test_it_changes_nothing_and_sees_every_call(factory: type[Process], tmp_path: Path) -> None:
    watched = pickle.loads(pickle.dumps(Watched(factory, str(tmp_path))))
    one: list[pa.Table] = []
    two: list[pa.Table] = []
    found = run(spec_of(watched), ROWS, (3, 7), (3, 1), state=one)
    assert found == run(spec_of(factory), ROWS, (3, 7), (3, 1), state=two)
    assert objects_in(one) == objects_in(two)
    seen = visits(str(tmp_path))
    assert set(seen) == set(objects_in(one))
    assert disorder(seen) == []
    assert {v.process for calls in seen.values() for v in calls} == {os.getpid()}
    timers = {v.src == MAX_US for calls in seen.values() for v in calls}
    assert timers == ({False} if factory is Seen else {True, False})


def test_it_tells_what_is_not_in_order() -> None:
    one = Visit(3, 1, 1, "on_tuple", 5, 0, 1, True)
    later, beside = replace(one, ts=6, process=2), replace(one, ts=7, alone=False)
    assert disorder({3: [one, later], 4: [one]}) == []
    assert disorder({3: [later, one]}) == [(later, one)]
    assert disorder({3: [one, one]}) == [(one, one)]
    assert disorder({3: [later, beside]}) == [(beside, beside)]


def test_it_sees_a_call_inside_another(tmp_path: Path) -> None:
    class Nested(Seen):
        deep = False

        def on_tuple(self, tuple, keys):  # type: ignore[no-untyped-def]
            if not Nested.deep:
                Nested.deep = True
                run(spec_of(Watched(Nested, str(tmp_path))), ROWS[1:2])
            return super().on_tuple(tuple, keys)

    run(spec_of(Watched(Nested, str(tmp_path))), ROWS[1:2])
    assert disorder(visits(str(tmp_path)))
