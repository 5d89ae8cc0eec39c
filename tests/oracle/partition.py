"""The partitioning algorithms of the dissertation, one tuple at a time: Algorithms 1 to 5.

Nothing here is shared with the engine but the hash of a key, a word of 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

MASK = 2**64 - 1


def mixed(word: int) -> int:
    """The finaliser of splitmix64."""
    word = (word + 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ word >> 27) * 0x94D049BB133111EB) & MASK
    return word ^ word >> 31


def candidates(word: int, d: int, workers: int) -> list[int]:
    """H_1(k) to H_d(k): different workers, each drawn from those that are left."""
    if d >= workers:
        return list(range(workers))
    left, found = list(range(workers)), []
    for j in range(d):
        drawn = mixed(word + 0x9E3779B97F4A7C15 * (j + 1) & MASK) >> 32
        found.append(left.pop(drawn * len(left) >> 32))
    return found


class ExactSet:
    """Section 3.4.2.1."""

    def __init__(self) -> None:
        self.keys: set[int] = set()

    def update(self, word: int) -> None:
        self.keys.add(word)

    def estimate(self) -> float:
        return len(self.keys)

    def contains(self, word: int) -> bool:
        return word in self.keys


class HyperLogLog:
    """Section 3.4.2.2: 4096 registers of five bits; linear counting where there are few keys."""

    def __init__(self) -> None:
        self.registers = [0] * 4096

    def update(self, word: int) -> None:
        word = mixed(word ^ 0x94D049BB133111EB)
        rest = format(word >> 12, "052b")
        rank = min(len(rest) - len(rest.lstrip("0")) + 1, 31)
        self.registers[word & 4095] = max(self.registers[word & 4095], rank)

    def estimate(self) -> float:
        raw = 0.7213 / (1 + 1.079 / 4096) * 4096 * 4096 / sum(2.0**-r for r in self.registers)
        zeros = self.registers.count(0)
        return 4096 * math.log(4096 / zeros) if raw <= 2.5 * 4096 and zeros else raw

    def contains(self, word: int) -> bool:
        """The optimistic check of section 3.5.2: a trial that does not change the estimate."""
        trial = HyperLogLog()
        trial.registers = list(self.registers)
        trial.update(word)
        return trial.estimate() == self.estimate()


STRUCTURES = {"exact": ExactSet, "hll": HyperLogLog}


@dataclass
class Window:
    """C and L of one window; `before` is C of the one before it where windows slide."""

    L: list[int]
    C: list[ExactSet | HyperLogLog]
    before: list[ExactSet | HyperLogLog] | None = None


@dataclass
class Plain:
    """Algorithm 1: what one upstream task decides, window by window."""

    name: str
    workers: int
    d: int = 2
    p: float = 0.5
    keys: str = "exact"
    slides: bool = False
    windows: dict[int, Window] = field(default_factory=dict)

    def decide(self, word: int, period: int = 0, weight: int = 1) -> int:
        if period not in self.windows:
            earlier = self.windows.get(period - 1) if self.slides else None
            structures = [STRUCTURES[self.keys]() for _ in range(self.workers)]
            before = None if earlier is None else earlier.C
            self.windows[period] = Window([0] * self.workers, structures, before)
        window = self.windows[period]
        d = self.workers if self.name == "shuffle" else self.d
        chosen = getattr(self, self.name)(window, word, candidates(word, d, self.workers))
        window.L[chosen] += weight
        return chosen

    def shuffle(self, w: Window, k: int, c: Sequence[int]) -> int:
        return min(c, key=lambda v: w.L[v])

    def pk(self, w: Window, k: int, c: Sequence[int]) -> int:
        return min(c, key=lambda v: w.L[v])

    def cm(self, w: Window, k: int, c: Sequence[int]) -> int:
        """Algorithm 2."""
        chosen = min(c, key=lambda v: w.C[v].estimate())
        w.C[chosen].update(k)
        return chosen

    def am(self, w: Window, k: int, c: Sequence[int]) -> int:
        """Algorithm 3."""
        return self.affine(w, k, c, [structure.estimate() for structure in w.C])

    def cam(self, w: Window, k: int, c: Sequence[int]) -> int:
        """Algorithm 4."""
        return self.affine(w, k, c, w.L)

    def affine(self, w: Window, k: int, c: Sequence[int], loads: Sequence[float]) -> int:
        for v in c:
            if w.C[v].contains(k):
                return v
        chosen = min(c, key=lambda v: loads[v])
        if w.before is not None:
            chosen = next((v for v in c if w.before[v].contains(k)), chosen)
        w.C[chosen].update(k)
        return chosen

    def lm(self, w: Window, k: int, c: Sequence[int]) -> int:
        """Algorithm 5, with the scaled loads of equations 3.7 to 3.9."""
        tuples = scaled(w.L)
        keys = scaled([structure.estimate() for structure in w.C])
        chosen = min(c, key=lambda v: self.p * tuples[v] + (1 - self.p) * keys[v])
        w.C[chosen].update(k)
        return chosen


def scaled(loads: Sequence[float]) -> list[float]:
    low, high = min(loads), max(loads)
    return [(load - low) / (high - low) if high > low else 0.0 for load in loads]
