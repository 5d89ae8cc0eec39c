"""Two fleets of taxis in one stream, one of them in several sources.

Shows: several sources per stream, columns computed before a union, and a split of the result.
       The frontier is that of the slowest source, so no window misses a ride of any of them.
Run:   python examples/union_of_sources.py
       python examples/union_of_sources.py "local[*]"
"""

import sys

import tidegate as tg
from tidegate import col, count, lit, mean

RIDES = "generator:taxi?rows=10000&rate=2&seed={}"


def main(master: str = "none") -> None:
    session = tg.Session(master=master)
    fleets = [RIDES.format(1), RIDES.format(2)]
    yellow = session.stream(fleets, time="dropoff_time", name="yellow")
    green = session.stream(RIDES.format(3), time="dropoff_time", name="green")
    rides = yellow.select("fare", "tip", fleet=lit("yellow")).union(
        green.select("fare", "tip", fleet=lit("green"))
    )
    tipped, _ = rides.split(col("tip") > 0)
    hourly = (
        tipped.window("1 hour")
        .group_by("fleet")
        .agg(rides=count(), share=mean(col("tip") / col("fare")))
    )
    hourly.start(sink=tg.sink.console()).wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
