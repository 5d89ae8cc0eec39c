"""Runs a predicate over pairs as a program of short steps over blocks of stored tuples.

A program is data, so one compiled loop serves every predicate. For one asking tuple and a block of
stored ones, each step is a pass over the block, which the compiler turns into vector code. Values
are doubles; integers are exact in them up to 2**53. A pair about which the program cannot be sure
(a zero divisor, a larger integer) is *doubtful*: it is found, and the caller decides on it with the
exact kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.expression.pair_code import STEP, PairCode

Int64s = NDArray[np.int64]
Doubles = NDArray[np.float64]
Flags = NDArray[np.uint8]
Pairs = tuple[Int64s, Int64s]

_SAMPLE_PROBES, _SAMPLE_ROWS = 16, 256
"""The share of pairs that a conjunct lets pass is measured on a sample of this size."""


@dataclass(frozen=True)
class ProgramColumns:
    """The inputs of a program: columns and flags of the stored tuples and of the asking ones.

    `stored` and `stored_flags` have a row for each column, so that a step reads memory in order;
    `asking` and `asking_flags` have a row for each tuple. `rows` has the stored tuple at each
    place; None where places are the tuples' own numbers.
    """

    stored: Doubles
    stored_flags: Flags
    rows: Int64s | None
    asking: Doubles
    asking_flags: Flags


@dataclass(frozen=True)
class PairRun:
    """A program with its inputs; `order` has the conjuncts in the order in which they run."""

    code: PairCode
    columns: ProgramColumns
    order: tuple[int, ...]

    def find(
        self, first: Int64s, last: Int64s, most: int, some: slice = slice(None)
    ) -> tuple[Pairs, Pairs] | None:
        """Pairs (p, s) with first[p] <= s < last[p] that pass, and the doubtful ones; in no order.

        `some` restricts p; `first` and `last` are still those of all. None where there are more
        than `most` pairs: the search ends as soon as it knows.
        """
        used = np.flatnonzero(last[some] > first[some]) + (some.start or 0)
        p, s = self._found(used[np.argsort(first[used], kind="stable")], first, last, most)
        return None if len(p) > most else _parted(p, s)

    def passing(self, p: Int64s, s: Int64s) -> tuple[Pairs, Pairs]:
        """The given pairs that pass, and the doubtful ones; p must ascend."""
        rows = s if self.columns.rows is None else self.columns.rows[s]
        counts = np.bincount(p, minlength=len(self.columns.asking))
        last = np.cumsum(counts)
        found = replace(self, columns=replace(self.columns, rows=rows)).find(
            last - counts, last, 2**62
        )
        assert found is not None
        (p, at), (doubted, doubted_at) = found
        return (p, s[at]), (doubted, s[doubted_at])

    def ordered(self, first: Int64s, last: Int64s) -> PairRun:
        """The same run, with the conjuncts in the cheapest order for a sample of these pairs.

        A conjunct that may fail stays before all that follow it in the predicate: if one of those
        dropped the pair first, it would hide the failure.
        """
        conjuncts = self.code.conjuncts
        if len(conjuncts) < 2:
            return self
        used = np.flatnonzero(last > first)
        probes = used[:: max(len(used) // _SAMPLE_PROBES, 1)][:_SAMPLE_PROBES]
        begin = (first[probes] + last[probes] - _SAMPLE_ROWS) // 2
        low, high = first.copy(), last.copy()
        low[probes] = np.maximum(begin, first[probes])
        high[probes] = np.minimum(low[probes] + _SAMPLE_ROWS, last[probes])
        pairs = max(int((high[probes] - low[probes]).sum()), 1)
        probes = probes[np.argsort(low[probes], kind="stable")]
        rank = []
        for number, conjunct in enumerate(conjuncts):
            found, _ = replace(self, order=(number,))._found(probes, low, high, 2**62)
            # The classic order of filters: by cost over the share of pairs that a filter drops.
            rank.append(conjunct.cost / max(1 - len(found) / pairs, 1e-6))
        left, order = list(range(len(conjuncts))), list[int]()
        while left:
            barrier = next((i for i, c in enumerate(left) if not conjuncts[c].total), len(left))
            order.append(min(left[: barrier + 1], key=lambda c: rank[c]))
            left.remove(order[-1])
        return replace(self, order=tuple(order))

    def _found(
        self, order: Int64s, first: Int64s, last: Int64s, most: int
    ) -> tuple[Int64s, Int64s]:
        from tidegate.operate.kernels.join.program_loop import pairs

        places = _fixed(order), _fixed(first), _fixed(last)
        found: tuple[Int64s, Int64s] = pairs()(*places, most, *self._arguments())
        return found

    def _arguments(self) -> tuple[Any, ...]:
        columns, code = self.columns, self.code
        steps, table = list[tuple[int, ...]](), list[tuple[int, ...]]()
        for number in self.order:
            conjunct = code.conjuncts[number]
            begin = len(steps)
            steps += conjunct.steps
            table.append((begin, len(steps), *conjunct.doubt))
        rows = np.empty(0, np.int64) if columns.rows is None else columns.rows
        return (
            columns.stored,
            columns.stored_flags,
            _fixed(rows),
            columns.asking,
            columns.asking_flags,
            np.array(code.constants, np.float64),
            np.array(steps, np.int64).reshape(-1, STEP),
            np.array(table, np.int64).reshape(-1, 4),
            code.registers,
            code.masks,
        )


def _fixed(array: Int64s) -> Int64s:
    return np.ascontiguousarray(array, np.int64)


def _parted(p: Int64s, s: Int64s) -> tuple[Pairs, Pairs]:
    """Part pairs that pass from doubtful ones, whose places the loop gives as -1 - s."""
    doubtful = s < 0
    if not doubtful.any():
        return (p, s), (p[:0], s[:0])
    return (p[~doubtful], s[~doubtful]), (p[doubtful], -1 - s[doubtful])
