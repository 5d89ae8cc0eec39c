"""A process over windows whose state can be merged: the hosts that send most, by protocol.

Shows: a Process with `merge` and `finish`, several rows for each key and window, and a partitioner
       that gives the tuples of the few keys to all instances.
Run:   python examples/busiest_hosts.py
"""

import sys
from collections import Counter

import tidegate as tg


class Busiest(tg.Process):
    """The hosts that have sent the most bytes, in their order."""

    output = {"place": "int", "host": "string", "bytes": "bigint"}  # noqa: RUF012
    mergeable = True

    def __init__(self, most: int = 3):
        self.most = most
        self.sent = Counter()

    def on_tuple(self, packet, keys):
        self.sent[packet.src] += packet.size

    def merge(self, other):
        self.sent.update(other.sent)

    def finish(self):
        ranked = sorted(self.sent.items(), key=lambda item: (-item[1], item[0]))
        for place, (host, sent) in enumerate(ranked[: self.most], start=1):
            yield {"place": place, "host": host, "bytes": sent}


def main(master: str = "none") -> None:
    session = tg.Session(master=master)
    packets = session.stream("generator:packets?rows=20000&rate=2000", name="packets")
    busiest = packets.window("2 seconds").group_by("protocol").partition("auto").process(Busiest)
    busiest.start(sink=tg.sink.console(), instances=2).wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
