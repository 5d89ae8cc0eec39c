"""A predicate of one's own: calls of different subscribers that began close to each other.

Shows: `join` with a Python function, called with the candidates of both sides as aligned tables;
       a condition beside it on the result, and the columns by `left` and `right`.
Run:   python examples/near_calls.py
"""

import sys

import numpy as np

import tidegate as tg
from tidegate import left, right


def near(one, other):
    """Within 5 km, by the great circle; one boolean per pair."""
    lat1, lon1 = np.radians(one["lat"].to_numpy()), np.radians(one["lon"].to_numpy())
    lat2, lon2 = np.radians(other["lat"].to_numpy()), np.radians(other["lon"].to_numpy())
    h = np.sin((lat2 - lat1) / 2) ** 2
    h += np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return 2 * 6_371_000 * np.arcsin(np.sqrt(h)) <= 5_000


def main(master="none"):
    session = tg.Session(master=master)
    first = session.stream("generator:calls?rows=2000&rate=100&keys=500", time="ts")
    second = session.stream("generator:calls?rows=2000&rate=100&keys=500&seed=1", time="ts")
    pairs = (
        first.join(second, within="1 second", on=near)
        .where(left.src != right.src)
        .select(one=left.src, other=right.src, district=left.district)
    )
    pairs.start(sink=tg.sink.console(), instances=2).wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
