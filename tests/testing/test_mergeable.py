"""The check of mergeable processes: it passes those that keep the promise, and tells the others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operate.aggregate.test_process import Heaviest, Seen
from tests.property.mergeable import Profile
from tests.query.test_window_process import Plain
from tidegate.errors import QueryError
from tidegate.operate.process.definition import Process
from tidegate.testing import Watched, check_process


class Total(Process):
    """A sum of floats, which depends on the order of addition."""

    output = {"total": "double"}  # noqa: RUF012
    mergeable = True

    def __init__(self) -> None:
        self.total = 0.0

    def on_tuple(self, tuple: Any, keys: list[Any]) -> None:
        self.total += tuple.x

    def merge(self, other: Total) -> None:
        self.total += other.total

    def finish(self) -> dict[str, float]:
        return {"total": self.total}


class Unsorted(Profile):
    """Rows in the order in which keys came, which depends on the parts."""

    def finish(self) -> Any:
        for key, n in self.counts.items():
            yield {"key": key, "n": n, "latest": 0}


PROFILED = [{"g": 1, "k": k, "i": i} for k, i in [("a", 3), ("b", None), (None, 3), ("b", 9)] * 3]


def test_what_keeps_the_promise_passes() -> None:
    check_process(Heaviest, [{"v": v} for v in (3, 3, 1, 9, -4)], tries=50)
    check_process(Profile, PROFILED, keys="g", tries=50)


def test_the_fewest_rows_are_told() -> None:
    with pytest.raises(AssertionError, match="process Total: the result must not depend") as caught:
        check_process(Total, [{"x": x} for x in (0.1, 0.2, 0.3, 1e16, -1e16)], tries=80)
    said = str(caught.value)
    assert "from fold(" in said
    assert "from merge(" in said
    assert said.count("e+16") <= 4


def test_an_order_that_comes_from_a_dict_is_told() -> None:
    with pytest.raises(AssertionError, match=r"Sort what finish\(\) takes from a dict or a set"):
        check_process(Unsorted, PROFILED, keys="g", tries=30)
    with pytest.raises(AssertionError, match="process Seen"):
        check_process(Seen, [{"word": w} for w in "abc"], tries=30)


def test_what_it_cannot_check_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one tuple"):
        check_process(Heaviest, [])
    with pytest.raises(ValueError, match="of one key; got several in g"):
        check_process(Profile, [{"g": g, "k": "a", "i": 1} for g in (1, 2)], keys="g")
    with pytest.raises(QueryError, match="must be mergeable"):
        check_process(Plain, [{"v": 1}])
    with pytest.raises(ValueError, match=r"Watched: .* got Heaviest, which is mergeable"):
        Watched(Heaviest, "nowhere")()
