"""A stream join of one's own at the speed of the built-in one: ScaleJoin by column.

Shows: a Process whose state is arrays, `self.state.columns`, with a compiled loop over them. Each
       object sees all tuples, appends those that it is to keep, every so-manieth, and compares
       each with those of its window that came before. `scalejoin_process.py` is the same by tuple.
Run:   python examples/scalejoin_columns.py
"""

import sys
from datetime import timedelta
from functools import partial

import numba
import numpy as np
import pyarrow as pa

import tidegate as tg
from tidegate import col, left, lit, right

R = "generator:r?rows=20000&rate=1000&domain=200"
S = "generator:s?rows=20000&rate=1000&domain=200"
BAND = np.float32(10)


@numba.njit(nogil=True)
def near(first, last, one, two, ones, twos):
    """Tuples that ask, and places between the first and the last of each that are near to it."""
    pairs, count = np.empty((64, 2), np.int64), 0
    for p in range(len(one)):
        for low in range(first[p], last[p], 512):
            high, found = min(low + 512, last[p]), False
            for s in range(low, high):  # without a branch: it becomes vector code
                found |= (abs(ones[s] - one[p]) <= BAND) & (abs(twos[s] - two[p]) <= BAND)
            for s in range(low, high if found else low):
                if abs(ones[s] - one[p]) <= BAND and abs(twos[s] - two[p]) <= BAND:
                    if count == len(pairs):
                        pairs = np.concatenate((pairs, np.empty_like(pairs)))
                    pairs[count, 0], pairs[count, 1] = p, s
                    count += 1
    return pairs[:count, 0], pairs[:count, 1]


class ScaleJoin(tg.Process):
    """Pairs of r and s at most `within` apart whose x and a, y and b differ by at most 10."""

    output = {"earlier": "bigint", "x": "float", "y": "float", "a": "float", "b": "float"}  # noqa: RUF012
    order = "earlier"

    def __init__(self, within):
        self.within, self.count = within, 0
        columns = {"number": "bigint", "one": "float", "two": "float"}
        ttl = within + timedelta(microseconds=1)  # a row that is `within` old still counts
        self.r = self.state.columns("r", columns, ttl)
        self.s = self.state.columns("s", columns, ttl)

    def process(self, batch):
        tuples = {name: batch[name].to_numpy() for name in ("ts", "one", "two")}
        tuples["number"] = self.count + np.arange(batch.num_rows)
        self.count += batch.num_rows
        of_r = batch["of_r"].to_numpy()
        mine = tuples["number"] % self.buckets == self.bucket
        self.r.append({name: values[mine & of_r] for name, values in tuples.items()})
        self.s.append({name: values[mine & ~of_r] for name, values in tuples.items()})
        of_both = (of_r, self.s, "xyab"), (~of_r, self.r, "abxy")
        return pa.concat_tables([self.pairs(tuples, *one) for one in of_both])

    def pairs(self, tuples, asking, kept, names):
        asks = {name: values[asking] for name, values in tuples.items()}
        first = np.searchsorted(kept["ts"], asks["ts"] - np.timedelta64(self.within))
        last = np.searchsorted(kept["number"], asks["number"])
        p, s = near(first, last, asks["one"], asks["two"], kept["one"], kept["two"])
        values = asks["one"][p], asks["two"][p], kept["one"][s], kept["two"][s]
        found = pa.table({"row": np.flatnonzero(asking)[p], **dict(zip(names, values))})
        return found.append_column("earlier", [kept["number"][s]]).select([*"xyab", "earlier", "row"])


def own(r, s, within):
    r = r.select(of_r=lit(True), one=col("x").cast("float"), two="y")
    s = s.select(of_r=lit(False), one=col("a").cast("float"), two="b")
    return r.union(s).process(partial(ScaleJoin, within)).select("x", "y", "a", "b")


def built_in(r, s, within):
    near = ((left.x - right.a).abs() <= 10) & ((left.y - right.b).abs() <= 10)
    pairs = r.join(s, within=within, on=near)
    return pairs.select(x=left.x.cast("float"), y=left.y, a=right.a.cast("float"), b=right.b)


def main(master: str = "none") -> None:
    session, mine, theirs = tg.Session(master=master), tg.sink.memory(), tg.sink.memory()
    given = session.stream(R, time="ts", name="r"), session.stream(S, time="ts", name="s")
    own(*given, timedelta(seconds=2)).start(sink=mine, instances=2).wait()
    built_in(*given, timedelta(seconds=2)).start(sink=theirs, instances=2, method="scan").wait()
    pairs, same = mine.table(), mine.table().equals(theirs.table())
    print(f"{pairs.num_rows:,} pairs, {'those' if same else 'not those'} of the built-in join")


if __name__ == "__main__":
    main(*sys.argv[1:])
