"""An aggregate of one's own: the volume-weighted average price of each stock, second by second.

Shows: the four steps of an Aggregator, all over whole columns. A state has one entry per group;
       `groups` says, row by row, which entry a row belongs to.
Run:   python examples/own_aggregate.py
"""

import sys

import numpy as np
import pyarrow as pa

import tidegate as tg


class VolumeWeightedPrice(tg.Aggregator):
    """sum(price * quantity) / sum(quantity), of integers, so that the sums are exact."""

    state = {"value": pa.int64(), "volume": pa.int64()}  # noqa: RUF012
    result = pa.float64()

    def init(self, n):
        return {"value": np.zeros(n, np.int64), "volume": np.zeros(n, np.int64)}

    def fold(self, state, groups, price, quantity):
        q = quantity.to_numpy()
        np.add.at(state["value"], groups, price.to_numpy() * q)
        np.add.at(state["volume"], groups, q)
        return state

    def merge(self, state, groups, other):
        np.add.at(state["value"], groups, other["value"])
        np.add.at(state["volume"], groups, other["volume"])
        return state

    def finish(self, state):
        return pa.array(state["value"] / state["volume"])


def main(master: str = "none") -> None:
    session = tg.Session(master=master)
    trades = session.stream("generator:trades?rows=20000&rate=2000", time="ts", name="trades")
    prices = (
        trades.window("1 second")
        .group_by("symbol")
        .agg(vwap=tg.aggregate(VolumeWeightedPrice(), "price", "quantity"), trades=tg.count())
    )
    prices.start(sink=tg.sink.console(), instances=2).wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
