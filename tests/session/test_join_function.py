"""Joins on a function of the user's: what it is given, and what happens when it is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tidegate as tg
from tests.driver.scene import memory, rows_of
from tidegate.errors import TaskError
from tidegate.sink.memory import MemorySink
from tidegate.state.store import Store

LEFT = ((1, "a", 1), (2, "b", 5), (4, "a", 3), (9, None, None))
RIGHT = ((1, "a", 2), (3, "b", 5), (5, "a", 9), (9, "a", 4))

Function = Callable[[pa.Table, pa.Table], Any]


def larger(left: pa.Table, right: pa.Table) -> pa.Array:
    """NULL is no match, as in SQL."""
    return pc.greater(right["v"], left["v"])


def run(on: Function, checkpoint: Path | None = None, **options: Any) -> MemorySink:
    session = tg.Session(master="none")
    sides = [
        session.stream(memory(*rows, id=name, end=True), time="ts", name=name)
        for name, rows in (("l", LEFT), ("r", RIGHT))
    ]
    sink = MemorySink()
    pairs = sides[0].join(sides[1], within="2 seconds", on=on)
    query = pairs.select(a=tg.left.v, b=tg.right.v).start(
        sink=sink, checkpoint=None if checkpoint is None else str(checkpoint), **options
    )
    query.wait()
    return sink


WANTED = [(1.0, 1, 2), (3.0, 1, 5), (4.0, 3, 5), (5.0, 3, 9)]


@pytest.mark.parametrize(
    "on",
    [
        larger,
        lambda left, right: np.array(larger(left, right).fill_null(False)),
        lambda left, right: [v is True for v in larger(left, right).to_pylist()],
    ],
    ids=["an Arrow array", "a NumPy array", "a list"],
)
@pytest.mark.parametrize("batch_rows", [1, 3, 100])
def test_a_function_is_the_predicate(on: Function, batch_rows: int) -> None:
    assert rows_of(run(on, batch_rows=batch_rows, instances=2)) == WANTED


def raises(left: pa.Table, right: pa.Table) -> pa.Array:
    if 9 in right["v"].to_pylist():
        raise KeyError("no such thing")
    return larger(left, right)


def one_value(left: pa.Table, right: pa.Table) -> bool:
    return True


def one_too_few(left: pa.Table, right: pa.Table) -> np.ndarray:
    return np.ones(left.num_rows - 1, np.bool_)


def two_columns(left: pa.Table, right: pa.Table) -> np.ndarray:
    return np.ones((left.num_rows, 2), np.bool_)


def numbers(left: pa.Table, right: pa.Table) -> pa.Array:
    return pc.subtract(right["v"], left["v"])


def nothing(left: pa.Table, right: pa.Table) -> None:
    return None


def misnames(left: pa.Table, right: pa.Table) -> pa.Array:
    return pc.greater(right["value"], left["v"])


WRONG: dict[str, tuple[Function, str]] = {
    "it raises": (raises, "must not raise; got KeyError: 'no such thing'"),
    "it returns one value": (one_value, "one boolean for each of .* pairs?; got a single value"),
    "one too few": (one_too_few, r"one boolean for each of .* pairs?; got shape \("),
    "two columns": (two_columns, r"one boolean for each of .* pairs?; got shape \(\d+, 2\)"),
    "numbers": (numbers, "one boolean for each of .* pairs?; got an array of int64"),
    "nothing": (nothing, "one boolean for each of .* pairs?; got "),
    "an unknown column": (misnames, 'must not raise; got KeyError: .*"value"'),
}


@pytest.mark.parametrize("how", WRONG)
def test_a_wrong_function_is_named_with_its_line_and_nothing_is_committed(
    how: str, tmp_path: Path
) -> None:
    function, message = WRONG[how]
    line = function.__code__.co_firstlineno
    with pytest.raises(TaskError, match=message) as caught:
        run(function, tmp_path, instances=2)
    assert str(caught.value).startswith(f"{function.__name__} ({__file__}:{line}): ")
    assert Store.open(str(tmp_path)).latest() is None


def test_what_came_before_a_failure_stays_and_the_rest_comes_after_it(tmp_path: Path) -> None:
    """The function fails at the fifth second; the pairs before it are there, and no others."""
    seen: list[int] = []

    def sometimes(left: pa.Table, right: pa.Table) -> pa.Array:
        return raises(left, right) if not seen else larger(left, right)

    with pytest.raises(TaskError, match="sometimes"):
        run(sometimes, tmp_path, batch_rows=1)
    manifest = Store.open(str(tmp_path)).latest()
    assert manifest is not None
    assert manifest.counters["rows_out"] == 3
    seen.append(1)
    sink = run(sometimes, tmp_path, batch_rows=1)
    assert rows_of(sink)[-1:] == WANTED[-1:]
    again = Store.open(str(tmp_path)).latest()
    assert again is not None
    assert (again.finished, again.counters["rows_out"]) == (True, 4)
