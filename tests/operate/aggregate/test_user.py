"""User aggregates: their identity, what they are given, and how their mistakes are told."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.operate.aggregate.stream import SumOfProducts, by_hash
from tidegate.batch import MAX_US, MIN_US
from tidegate.errors import QueryError, TaskError
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane.pane import AggregateSpec, close, fold, merge
from tidegate.operate.aggregate.pane.pane_window import PaneWindow
from tidegate.operate.aggregate.user import Aggregator, State


class Longest(Aggregator):
    """The longest text, the smaller of equals: a state that is not a number and may be NULL."""

    state = {"text": pa.string()}  # noqa: RUF012
    result = pa.string()

    def init(self, n: int) -> State:
        return {"text": pa.nulls(n, pa.string())}

    def fold(self, state: State, groups: Any, *columns: pa.Array) -> State:
        best = state["text"].to_pylist()
        for group, text in zip(groups, columns[0].to_pylist(), strict=True):
            if text is not None:
                best[group] = min(text, best[group] or "", key=lambda t: (-len(t), t))
        return {"text": best}

    def merge(self, state: State, groups: Any, other: State) -> State:
        return self.fold(state, groups, other["text"])

    def finish(self, state: State) -> pa.Array:
        return state["text"]


def spec_of(user: Aggregator, arguments: tuple[str, ...] = ("x",)) -> AggregateSpec:
    function = Function("a", "user", arguments, (pa.string(),) * len(arguments), (user,))
    return AggregateSpec(PaneWindow(4, 2), (("k", pa.int64()),), (function,))


def rows(values: list[Any], type_: pa.DataType) -> pa.Table:
    ids = np.arange(len(values))
    return pa.table({"ts": ids, "k": ids % 2, "x": pa.array(values, type_)})


def test_a_state_of_text_passes_through_panes_and_windows() -> None:
    spec = spec_of(Longest())
    made = rows(["a", "bb", None, "b", "ccc", "bb"], pa.string())
    parts = [fold(spec, made.slice(i, 2), by_hash(4)) for i in (0, 2, 4)]
    closed = close(spec, merge(spec, parts), MIN_US, MAX_US)
    assert closed["a"].to_pylist() == ["a", "bb", "a", "bb", "ccc", "bb", "ccc", "bb"]


def test_its_name_is_the_class_and_the_public_parameters() -> None:
    one = SumOfProducts(3)
    assert one.name.endswith("stream.SumOfProducts(factor=3)")
    assert one == SumOfProducts(3) != SumOfProducts(4)
    assert pickle.loads(pickle.dumps(one)) == one
    assert hash(one) == hash(SumOfProducts(3))


def test_a_parameter_that_prints_an_address_is_refused() -> None:
    with pytest.raises(QueryError, match="parameter factor must print the same in every process"):
        _ = SumOfProducts(object()).name  # type: ignore[arg-type]


class Broken(Longest):
    """Does one thing wrong, as told."""

    def __init__(self, method: str, answer: Any) -> None:
        self._method, self._answer = method, answer

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_") and name == self._method:
            return lambda *_: self._answer()
        return super().__getattribute__(name)


def fail() -> None:
    raise ZeroDivisionError("division by zero")


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("init", fail, r"Broken\.init: it must not raise; got ZeroDivisionError: division by zero"),
        ("fold", fail, r"Broken\.fold: it must not raise"),
        ("merge", fail, r"Broken\.merge: it must not raise"),
        ("finish", fail, r"Broken\.finish: it must not raise"),
        ("fold", lambda: None, r"Broken\.fold: it must return a dict of text; got NoneType"),
        ("fold", lambda: {"t": []}, r"Broken\.fold: it must return a dict of text; got \['t'\]"),
        (
            "merge",
            lambda: {"text": ["a"]},
            r"merge: state text must have \d+ entries; got 1",
        ),
        ("finish", lambda: [1.5], r"Broken\.finish: the result must have \d+ entries; got 1"),
        ("finish", lambda: [[1]], r"Broken\.finish: the result must be a column of string"),
    ],
)
def test_mistakes_name_the_class_and_the_method(method: str, answer: Any, message: str) -> None:
    spec = spec_of(Broken(method, answer))
    with pytest.raises(TaskError, match=message):
        close(
            spec,
            merge(spec, [fold(spec, rows(["a"] * 9, pa.string()), by_hash(2))]),
            MIN_US,
            MAX_US,
        )


class Nullable(SumOfProducts):
    def init(self, n: int) -> State:
        return {"total": pa.nulls(n, pa.int64()), "rows": np.zeros(n, np.int64)}


def test_numbers_in_a_state_are_not_null() -> None:
    spec = spec_of(Nullable(), ("x", "x"))
    with pytest.raises(TaskError, match=r"Nullable\.init: state total must not hold NULL"):
        fold(spec, rows([1, 2], pa.int64()), by_hash(2))


def test_a_class_without_state_is_refused_when_the_query_is_made() -> None:
    class Stateless(Aggregator):
        result = pa.int64()

    with pytest.raises(QueryError, match="Stateless: the class must say its state"):
        Function("a", "user", parameters=(Stateless(),))
    with pytest.raises(QueryError, match="a user aggregate needs its Aggregator"):
        Function("a", "user")
