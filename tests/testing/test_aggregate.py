"""The check of users' aggregates: it passes those that keep the promise, and tells the others."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from tests.operate.aggregate.mean import Mean
from tests.operate.aggregate.stream import SumOfProducts
from tests.operate.aggregate.test_user import Longest
from tests.operate.tuple_window.test_window import Climb
from tidegate.operate.aggregate.user import Aggregator, State
from tidegate.testing import check_aggregate

AWKWARD = [0.1, 0.2, 0.3, 1e16, -1e16, 1.0, 0.5]


class Total(Aggregator):
    """A sum of floats, which depends on the order of addition."""

    state = {"total": pa.float64()}  # noqa: RUF012
    result = pa.float64()

    def init(self, n: int) -> State:
        return {"total": np.zeros(n)}

    def fold(self, state: State, groups: Any, *columns: pa.Array) -> State:
        np.add.at(state["total"], groups, columns[0].fill_null(0).to_numpy())
        return state

    def merge(self, state: State, groups: Any, other: State) -> State:
        np.add.at(state["total"], groups, other["total"])
        return state

    def finish(self, state: State) -> pa.Array:
        return pa.array(state["total"])


class Newest(Total):
    """The last value of a fold and of a merge: associative, not commutative."""

    def fold(self, state: State, groups: Any, *columns: pa.Array) -> State:
        return self.merge(state, groups, {"total": columns[0].to_numpy()})

    def merge(self, state: State, groups: Any, other: State) -> State:
        state["total"][groups] = other["total"]
        return state


class Noisy(Total):
    """Counts the groups of a call, which are none of its business."""

    def fold(self, state: State, groups: Any, *columns: pa.Array) -> State:
        return {"total": state["total"] + len(state["total"])}

    def merge(self, state: State, groups: Any, other: State) -> State:
        np.maximum.at(state["total"], groups, other["total"])
        return state


class Cached(Newest):
    """Takes the merge of a single state for something that never happens."""

    def merge(self, state: State, groups: Any, other: State) -> State:
        more = 1.0 if len(other["total"]) == 1 else 0.0
        np.maximum.at(state["total"], groups, np.abs(other["total"]) + more)
        return state

    def fold(self, state: State, groups: Any, *columns: pa.Array) -> State:
        np.maximum.at(state["total"], groups, np.abs(columns[0].to_numpy()))
        return state


def test_what_keeps_the_promise_passes() -> None:
    check_aggregate(SumOfProducts(), [1, 2, None, 2**40], pa.array([3, None, 7, -1], pa.int16()))
    check_aggregate(Longest(), ["", "a", "bb", None, "b", "\u00e9"])
    check_aggregate(Climb(), [3, 1, 4, 1, 5, 9, 2, 6], in_order=True)
    check_aggregate(Newest(), AWKWARD, in_order=True)


def told(aggregate: Aggregator, *columns: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        check_aggregate(aggregate, *columns, **options)
    return str(caught.value)


def test_a_sum_of_floats_is_told_with_few_rows_and_both_results() -> None:
    said = told(Total(), AWKWARD)
    start = "aggregate Total: the result must not depend on how rows are divided and merged; got "
    ways = r"(\S+) from fold\((.*?)\) and (\S+) from (merge\(.*\))\. Keep.*"
    assert said.startswith(start)
    found = re.fullmatch(ways, said.removeprefix(start))
    assert found is not None, said
    assert found[1] != found[3]
    assert len(found[2].split(", ")) <= 3
    assert told(Total(), AWKWARD) == said, "the same search each time"


def test_a_sum_of_floats_is_not_associative_either() -> None:
    said = told(Total(), AWKWARD, in_order=True)
    assert "the result must not depend on how rows are divided" in said


def test_an_order_that_counts_is_told_with_two_rows() -> None:
    said = told(Newest(), [1.0, 2.0, 3.0, 4.0])
    (at_once,) = re.findall(r"from fold\((.*?)\) and", said)
    assert len(at_once.split(", ")) == 2, said


def test_other_groups_are_told() -> None:
    said = told(Noisy(), [1.0, 2.0])
    assert "the result must not depend on the rows of other groups; got a difference in" in said
    assert said.endswith("Use `groups` for every row of a column.")


def test_a_merge_of_one_state_is_tried() -> None:
    assert "got 1.0 from fold(1.0) and 2.0 from merge(fold(1.0))" in told(Cached(), [1.0])


def test_nothing_to_check_is_a_mistake() -> None:
    for columns in ([], [[]]):
        with pytest.raises(ValueError, match="values for at least one row must be given"):
            check_aggregate(Total(), *columns)


class ShareOfNull(Aggregator):
    """How many of the values are NULL: a class that counts them, and says so or not."""

    state: ClassVar = {"none": pa.int64(), "n": pa.int64()}
    result = pa.float64()
    mean_like = True

    def init(self, n: int) -> dict[str, Any]:
        return {"none": np.zeros(n, np.int64), "n": np.zeros(n, np.int64)}

    def fold(self, state: dict[str, Any], groups: Any, x: pa.Array) -> dict[str, Any]:
        np.add.at(state["none"], groups, x.is_null().to_numpy(zero_copy_only=False).astype(int))
        np.add.at(state["n"], groups, 1)
        return state

    def merge(self, state: dict[str, Any], groups: Any, other: dict[str, Any]) -> dict[str, Any]:
        for name, held in state.items():
            np.add.at(held, groups, other[name])
        return state

    def finish(self, state: dict[str, Any]) -> pa.Array:
        return pa.array(state["none"] / np.maximum(state["n"], 1))


class SaysSo(ShareOfNull):
    skips_null = False


def test_a_class_that_counts_null_must_say_so() -> None:
    with pytest.raises(AssertionError, match="skips_null = False in the class") as wrong:
        check_aggregate(ShareOfNull(), [1, None, 3, None])
    assert "got 0.5 with and 0.0 without them" in str(wrong.value)
    check_aggregate(ShareOfNull(), [1, 2, 3])
    check_aggregate(SaysSo(), [1, None, 3, None])
    check_aggregate(Mean(), [1.0, None, 3.0])
