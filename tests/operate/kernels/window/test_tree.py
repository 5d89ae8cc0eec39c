"""The tree of merges: windows have their panes in order, by merges that they alone decide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.window.tree import Ranges, Shape, Tree

KEYED = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-70, 70) | st.sampled_from([-(2**50), 2**50])),
    min_size=1,
    max_size=40,
    unique=True,
)


class Written:
    """A function whose state is how it was merged, as text in brackets; counts what it is given."""

    state = (("text", pa.string()),)
    result = pa.string()

    def __init__(self) -> None:
        self.merged = 0

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        raise NotImplementedError

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        parts: list[list[str]] = [[] for _ in range(groups.n)]
        for code, text in zip(groups.codes.tolist(), states[0].to_pylist(), strict=True):
            parts[code].append(text)
        self.merged += len(states[0])
        return [pa.array([f"[{' '.join(part)}]" for part in parts], pa.string())]

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        return states[0]


def windows(
    leaves: list[tuple[int, int]], starts: list[tuple[int, int]], length: int
) -> tuple[list[str], Written]:
    """How the windows of keys that begin with panes are merged, and the function that was."""
    leaves = sorted(leaves)
    family = Written()
    codes, panes = (np.array(column) for column in zip(*leaves, strict=True))
    texts = pa.array([f"{key}:{pane}" for key, pane in leaves])
    tree = Tree(Shape(codes, panes, length), family, [texts])
    held = [own(leaves, key, start, length) for key, start in starts]
    first, last = (np.array([places[i] for places in held], np.int64) for i in (0, -1))
    ranges = Ranges(first, last, np.array([start for _, start in starts], np.int64))
    (made,) = tree.windows(ranges)
    return made.to_pylist(), family


def own(leaves: list[tuple[int, int]], key: int, start: int, length: int) -> list[int]:
    """The places of the panes of a window."""
    return [i for i, (k, p) in enumerate(leaves) if k == key and start <= p < start + length]


@given(KEYED, st.integers(1, 60), st.data())
def test_a_window_is_merged_from_its_panes_in_order_and_by_them_alone(
    leaves: list[tuple[int, int]], length: int, data: st.DataObject
) -> None:
    leaves = sorted(leaves)
    possible = sorted({(k, p - back) for k, p in leaves for back in {0, length // 2, length - 1}})
    starts = data.draw(st.lists(st.sampled_from(possible), min_size=1, max_size=12))
    made, _ = windows(leaves, starts, length)
    for text, (key, start) in zip(made, starts, strict=True):
        mine = [leaves[i] for i in own(leaves, key, start, length)]
        assert text.replace("[", "").replace("]", "").split() == [f"{k}:{p}" for k, p in mine]
        assert windows(mine, [(key, start)], length)[0] == [text]


@pytest.mark.parametrize("length", [1, 2, 64, 100, 127, 128])
def test_many_windows_take_a_few_merges_each(length: int) -> None:
    leaves = [(0, pane) for pane in range(2000)]
    starts = [(0, start) for start in range(1, 2000 - length)]
    _, family = windows(leaves, starts, length)
    assert family.merged <= 13 * len(leaves)


@pytest.mark.parametrize("start", [0, 1, 17, 700])
def test_one_window_takes_its_nodes_and_log_many_more(start: int) -> None:
    length = 1000
    leaves = [(0, start + pane) for pane in range(length)]
    _, family = windows(leaves, [(0, start)], length)
    assert family.merged <= 2 * length + 4 * math.ceil(math.log2(length)) + 3


def test_no_window_is_no_merge() -> None:
    shape = Shape(np.array([0]), np.array([5]), 4)
    nothing: Any = np.empty(0, np.int64)
    (made,) = Tree(shape, Written(), [pa.array(["0:5"])]).windows(Ranges(nothing, nothing, nothing))
    assert made.to_pylist() == []
