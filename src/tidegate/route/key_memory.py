"""Remembers which keys each instance has, exactly or approximately.

Both kinds serve the same loops (`choice_loop`): add a key to an instance, ask for a key, count the
keys. They differ in memory: the exact one takes 16 to 64 bytes for each key and instance that has
it, the approximate one 4096 bytes for each instance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tidegate.route.partitioner import Int32s, Int64s

Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

EXACT, HLL = "exact", "hll"
KINDS = (EXACT, HLL)

CM, AM, CAM, LM = range(4)
"""The rules that need keys. CM: fewest keys. AM: the key's place, else fewest keys. CAM: the key's
place, else fewest tuples. LM: a mean of both loads."""

REGISTERS = 4096
"""The registers of each instance's HyperLogLog; a register is at most 31, in a byte."""

_FIRST_PLACES = 1_024


@dataclass(frozen=True)
class LoopRule:
    """The arguments of a loop: its rule, the number of candidates, and LM's weight of tuples."""

    number: int
    d: int
    p: float = 0.5


class KeyMemory(Protocol):
    """The keys of instances in one period; changed in place."""

    @property
    def nbytes(self) -> int: ...

    def place(
        self,
        words: Words,
        weights: Int64s,
        rule: LoopRule,
        loads: Int64s,
        earlier: KeyMemory | None,
    ) -> tuple[Int32s, Flags]:
        """Choose an instance for each unit in order, and note it in `loads` and here.

        Returns the instances, and flags of the units that changed this memory. `earlier` is the
        memory of the period before, of the same kind; None if that does not count.
        """

    def add(self, words: Words, instances: Int64s) -> None:
        """Note keys that instances have."""


class KeySets:
    """Exact sets in one table; grows with the keys of the period, times the instances of each."""

    def __init__(self, instances: int) -> None:
        self.counts = np.zeros(instances, np.float64)
        self.table = np.zeros(_FIRST_PLACES, np.uint64)

    @property
    def nbytes(self) -> int:
        return self.table.nbytes + self.counts.nbytes

    def place(
        self,
        words: Words,
        weights: Int64s,
        rule: LoopRule,
        loads: Int64s,
        earlier: KeyMemory | None,
    ) -> tuple[Int32s, Flags]:
        from tidegate.route.choice_loop import with_sets

        assert earlier is None or isinstance(earlier, KeySets)
        before = np.zeros(1, np.uint64) if earlier is None else earlier.table
        chosen, added = np.empty(len(words), np.int32), np.empty(len(words), np.bool_)
        asked = (rule.number, rule.d, rule.p, loads, self.counts)
        done = 0
        while done < len(words):
            done = with_sets()(words, weights, done, *asked, self.table, before, chosen, added)
            self._make_room()
        return chosen, added

    def add(self, words: Words, instances: Int64s) -> None:
        from tidegate.route.choice_loop import add_to_sets

        done = 0
        while done < len(words):
            done = add_to_sets()(words, instances, done, self.counts, self.table)
            self._make_room()

    def _make_room(self) -> None:
        from tidegate.route.choice_loop import grow

        if 2 * (int(self.counts.sum()) + 1) > len(self.table):
            larger = np.zeros(4 * len(self.table), np.uint64)
            grow()(self.table, larger)
            self.table = larger


class KeySketches:
    """A HyperLogLog for each instance; its size does not depend on the keys."""

    def __init__(self, instances: int) -> None:
        self.counts = np.zeros(instances, np.float64)
        self.registers = np.zeros((instances, REGISTERS), np.uint8)
        self.sums = np.full(instances, float(REGISTERS))
        self.zeros = np.full(instances, REGISTERS, np.int64)

    @property
    def nbytes(self) -> int:
        return self.registers.nbytes + self.counts.nbytes + self.sums.nbytes + self.zeros.nbytes

    @property
    def _sketch(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float64], Int64s]:
        return self.registers, self.sums, self.zeros

    def place(
        self,
        words: Words,
        weights: Int64s,
        rule: LoopRule,
        loads: Int64s,
        earlier: KeyMemory | None,
    ) -> tuple[Int32s, Flags]:
        from tidegate.route.choice_loop import with_sketches

        assert earlier is None or isinstance(earlier, KeySketches)
        before = (self.registers[:0], self.sums[:0], self.zeros[:0])
        before = before if earlier is None else earlier._sketch
        chosen, added = np.empty(len(words), np.int32), np.empty(len(words), np.bool_)
        asked = (rule.number, rule.d, rule.p, loads, self.counts)
        with_sketches()(words, weights, *asked, *self._sketch, *before, chosen, added)
        return chosen, added

    def add(self, words: Words, instances: Int64s) -> None:
        from tidegate.route.choice_loop import add_to_sketches

        add_to_sketches()(words, instances, self.counts, *self._sketch)

    def raise_to(self, instance: int, registers: Int64s, held: Int64s) -> None:
        """Raise registers of an instance to the values of another sketch of its keys."""
        from tidegate.route.choice_loop import estimate

        mine = self.registers[instance]
        np.maximum.at(mine, registers, held.astype(np.uint8))
        self.sums[instance] = np.ldexp(1.0, -mine.astype(np.int64)).sum()
        self.zeros[instance] = REGISTERS - np.count_nonzero(mine)
        self.counts[instance] = estimate(float(self.sums[instance]), int(self.zeros[instance]))


def key_memory(kind: str, instances: int) -> KeyMemory:
    """An empty memory of a kind."""
    return KeySketches(instances) if kind == HLL else KeySets(instances)


def load_loop(kind: str | None) -> None:
    """Load the compiled loops for a kind of memory, or for none.

    A process calls it once before the first choice. Loading takes half a second, which must not
    count as time spent choosing.
    """
    from tidegate.route import choice_loop

    exact = (choice_loop.with_sets, choice_loop.grow)
    loops = {None: (choice_loop.by_load,), HLL: (choice_loop.with_sketches,)}
    for loop in loops.get(kind, exact):
        loop()
