"""Remembers which keys each instance has, exactly or nearly.

Both kinds answer the same questions inside the loops (`choice_loop`): add a key to an instance, is
it there, how many are there. They differ in what they cost: eight to sixteen bytes for each key and
instance that has it, or 4096 bytes for each instance.
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
"""The rules that ask for keys: fewest keys; its place, or fewest keys; its place, or fewest tuples;
both loads."""

REGISTERS = 4096
"""Of each instance's HyperLogLog; a register holds at most 31, five bits, in a byte."""

_FIRST_PLACES = 1_024


@dataclass(frozen=True)
class LoopRule:
    """What a loop is told: the number of its rule, of candidates, and LM's share of the tuples."""

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

        Gives the instances, and which units have changed what is known of their keys. `earlier` is
        of the same kind, of the period before, where that counts.
        """

    def add(self, words: Words, instances: Int64s) -> None:
        """Keys that instances have."""


class KeySets:
    """Exact sets, in one table; grows with the keys of the period, times the places of each."""

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
    """HyperLogLog for each instance: its size is that of the registers, whatever the keys."""

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
        """Registers of an instance that hold at least this much in another sketch of its keys."""
        from tidegate.route.choice_loop import estimate

        mine = self.registers[instance]
        np.maximum.at(mine, registers, held.astype(np.uint8))
        self.sums[instance] = np.ldexp(1.0, -mine.astype(np.int64)).sum()
        self.zeros[instance] = REGISTERS - np.count_nonzero(mine)
        self.counts[instance] = estimate(float(self.sums[instance]), int(self.zeros[instance]))


def key_memory(kind: str, instances: int) -> KeyMemory:
    """An empty one of a kind."""
    return KeySketches(instances) if kind == HLL else KeySets(instances)


def load_loop(kind: str | None) -> None:
    """Have the compiled code that decides with such a memory, or with none.

    A process does it once, before the first decision: it takes half a second, and is none.
    """
    from tidegate.route import choice_loop

    exact = (choice_loop.with_sets, choice_loop.grow)
    loops = {None: (choice_loop.by_load,), HLL: (choice_loop.with_sketches,)}
    for loop in loops.get(kind, exact):
        loop()
