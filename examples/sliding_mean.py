"""The mean price of each stock over the last second, ten times a second.

Shows: a stream, a window, aggregates and a sink in Python.
Run:   python examples/sliding_mean.py              in this process, without Java
       python examples/sliding_mean.py "local[*]"   on Spark, with the same rows
"""

import sys

import tidegate as tg
from tidegate import col, count, mean


def main(master: str = "none") -> None:
    session = tg.Session(master=master)
    trades = session.stream("generator:trades?rows=20000&rate=2000", time="ts", name="trades")
    means = (
        trades.where(col("quantity") > 0)
        .window("1 second", slide="100 milliseconds")
        .group_by("symbol")
        .agg(price=mean("price"), trades=count())
    )
    query = means.start(sink=tg.sink.console())
    query.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
