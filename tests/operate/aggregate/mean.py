"""A mean as a user may write it: exact sums of thousandths, NULL left out."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.user import Aggregator


class Mean(Aggregator):
    """The mean of numbers that are rounded to thousandths."""

    state: ClassVar = {"total": pa.int64(), "n": pa.int64()}
    result = pa.float64()
    mean_like = True

    def init(self, n: int) -> dict[str, Any]:
        return {"total": np.zeros(n, np.int64), "n": np.zeros(n, np.int64)}

    def fold(self, state: dict[str, Any], groups: Any, x: pa.Array) -> dict[str, Any]:
        there = x.is_valid().to_numpy(zero_copy_only=False)
        values = np.rint(x.drop_null().to_numpy() * 1000).astype(np.int64)
        np.add.at(state["total"], groups[there], values)
        np.add.at(state["n"], groups[there], 1)
        return state

    def merge(self, state: dict[str, Any], groups: Any, other: dict[str, Any]) -> dict[str, Any]:
        for name, held in state.items():
            np.add.at(held, groups, other[name])
        return state

    def finish(self, state: dict[str, Any]) -> pa.Array:
        none = state["n"] == 0
        return pa.array(state["total"] / np.maximum(state["n"], 1) / 1000, mask=none)


class MeanAlone(Mean):
    """The same, for which nothing but the sample is kept."""

    exact_fallback = False
