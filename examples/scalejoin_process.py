"""A stream join as an operator of one's own: ScaleJoin in forty lines, beside the built-in join.

Shows: a Process without keys, whose objects all see all tuples. Each keeps every so-manieth of
       them, so that the comparisons are shared evenly whatever the values are. `order` puts the
       pairs of one tuple into the order of the other one, as the built-in join does.
Run:   python examples/scalejoin_process.py
"""

import sys
from datetime import timedelta

import tidegate as tg
from tidegate import left, lit, right

WITHIN = timedelta(seconds=2)
R = "generator:r?rows=400&rate=100&domain=200"
S = "generator:s?rows=400&rate=100&domain=200"


class ScaleJoin(tg.Process):
    """Pairs of r and s whose x and a, y and b differ by at most 10."""

    output = {"earlier": "bigint", "x": "int", "y": "float", "a": "int", "b": "float"}  # noqa: RUF012
    order = "earlier"

    def __init__(self):
        self.kept = {"r": [], "s": []}
        self.count = 0

    def on_tuple(self, tuple, keys):
        mine, other = ("r", "s") if tuple.side == "r" else ("s", "r")
        self.kept[other] = [k for k in self.kept[other] if tuple.ts - k[1]["ts"] <= WITHIN]
        for number, kept in self.kept[other]:
            if abs(kept["one"] - tuple.one) <= 10 and abs(kept["two"] - tuple.two) <= 10:
                r, s = (tuple, kept) if mine == "r" else (kept, tuple)
                yield (number, r["one"], r["two"], s["one"], s["two"])
        if self.count % self.buckets == self.bucket:
            self.kept[mine].append((self.count, tuple))
        self.count += 1


def own(session):
    r = session.stream(R, time="ts", name="r").select(side=lit("r"), one="x", two="y")
    s = session.stream(S, time="ts", name="s").select(side=lit("s"), one="a", two="b")
    return r.union(s).process(ScaleJoin).select("x", "y", "a", "b")


def built_in(session):
    r = session.stream(R, time="ts", name="r")
    s = session.stream(S, time="ts", name="s")
    near = ((left.x - right.a).abs() <= 10) & ((left.y - right.b).abs() <= 10)
    pairs = r.join(s, within=WITHIN, on=near)
    return pairs.select(x=left.x, y=left.y, a=right.a, b=right.b)


def main(master: str = "none") -> None:
    session = tg.Session(master=master)
    mine, theirs = tg.sink.memory(), tg.sink.memory()
    own(session).start(sink=mine, instances=2, buckets=8).wait()
    built_in(session).start(sink=theirs, instances=2).wait()
    pairs = mine.table()
    same = pairs.equals(theirs.table())
    print(f"{pairs.num_rows:,} pairs, {'those' if same else 'not those'} of the built-in join")


if __name__ == "__main__":
    main(*sys.argv[1:])
