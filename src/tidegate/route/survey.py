"""Describes the tuples of a period, wherever they went, so that `auto` can choose a partitioner.

A survey counts tuples in bins of the hash of their key, and keys with a HyperLogLog. Both add up,
so the cut into batches and tasks does not matter; neither depends on the owners of buckets, so a
survey outlives a switch. A bin is part of a bucket: so bins say exactly what each instance would
have if keys went by their hash. A key with many tuples shows as a bin with many.
"""

from __future__ import annotations

import numpy as np

from tidegate.route.key_memory import KeySketches, Words
from tidegate.route.partitioner import Int64s
from tidegate.route.selection import Measured

LEAST_BINS = 1_024
"""A key stands out in its bin if it has well above one in so many tuples."""

_PIECES = 8
"""A bin is placed in so many pieces, to estimate where its tuples would go one by one."""


class Survey:
    """The survey of one period of one source; takes 8 bytes for each bin and 4 kB for the keys."""

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets
        self.bins = np.zeros(buckets * max(LEAST_BINS // buckets, 1), np.int64)
        self.keys = KeySketches(1)

    @property
    def nbytes(self) -> int:
        return self.bins.nbytes + self.keys.nbytes

    @property
    def tuples(self) -> int:
        return int(self.bins.sum())

    def add(self, words: Words, tuples: Int64s) -> tuple[Int64s, Int64s]:
        """Count keys with the number of tuples of each; a key may come several times.

        Returns the tuples added to each bin, and the registers of the sketch that have risen.
        """
        place = (words % np.uint64(len(self.bins))).astype(np.int64)
        added = np.bincount(place, tuples, len(self.bins)).astype(np.int64)
        self.bins += added
        # The estimate follows from registers alone, so only risen ones are stored.
        before = self.keys.registers[0].copy()
        self.keys.add(words, np.zeros(len(words), np.int64))
        return added, np.flatnonzero(self.keys.registers[0] > before)

    def held(self, registers: Int64s) -> Int64s:
        """The values of registers of the sketch."""
        held: Int64s = self.keys.registers[0, registers].astype(np.int64)
        return held

    def restore(self, bins: Int64s, tuples: Int64s, registers: Int64s, held: Int64s) -> None:
        """Take up what `add` returned in earlier batches: tuples of bins, values of registers."""
        np.add.at(self.bins, bins, tuples)
        self.keys.raise_to(0, registers, held)

    def measured(self, owners: Int64s, instances: int, d: int) -> Measured:
        """What each choice would make of these tuples; `owners` numbers the owner of each bucket.

        Keys that each go to one of `d` candidates are estimated by bins that do, largest first;
        tuples that each do so are estimated by pieces of bins.
        """
        from tidegate.route.choice_loop import by_load

        by_bucket = self.bins.reshape(-1, self.buckets).sum(axis=0)
        by_hash = np.bincount(owners, by_bucket, instances)
        bins = np.argsort(-self.bins, kind="stable")[: np.count_nonzero(self.bins)]
        by_key = np.zeros(instances, np.int64)
        d = min(d, instances)
        by_load()(bins.astype(np.uint64), self.bins[bins], d, by_key)
        by_tuple = np.zeros(instances, np.int64)
        size, more = np.divmod(self.bins[bins, np.newaxis], _PIECES)
        pieces = (size + (np.arange(_PIECES) < more)).ravel()
        by_load()(np.repeat(bins, _PIECES).astype(np.uint64), pieces, d, by_tuple)
        return Measured(
            tuples=self.tuples,
            groups=max(round(float(self.keys.counts[0])), 1),
            instances=instances,
            by_hash=int(by_hash.max()),
            by_key=int(by_key.max()),
            by_tuple=int(by_tuple.max()),
            d=d,
        )
