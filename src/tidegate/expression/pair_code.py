"""The instruction set of programs over pairs; `operate.kernels.program` runs them."""

from __future__ import annotations

from dataclasses import dataclass

ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATE, ABS, ROOT, SINGLE, CHECK = range(9)
"""Steps from rows to a row. CHECK makes a pair doubtful where |a| > b, SINGLE rounds to a float."""
EQ, NE, LT, LE, GT, GE = range(9, 15)
"""Steps from rows to a mask: comparisons in Spark's order, where NaN is the greatest."""
AND, OR = 15, 16
"""Steps from masks to a mask."""

STEP = 6
"""The numbers of a step: operation, target, two operands, and the two flags that a comparison needs
(-1: none).

A non-negative operand is a row: the stored columns, then the registers. -1 - i is scalar number i:
the asking tuple's columns, then the constants. The first flag is the stored tuple's, the second the
asking tuple's; if one is not set, the comparison is not true.
"""

_COSTS = {DIVIDE: 3.0, ROOT: 4.0, EQ: 1.5, NE: 1.5, LT: 1.5, LE: 1.5, GT: 1.5, GE: 1.5}
"""The cost of a step per pair, if it is not 1. Masks cost nearly nothing (`AND`, `OR`: 0.2)."""


@dataclass(frozen=True)
class CodedConjunct:
    """The steps of one conjunct; its result is in mask 0.

    `total` says that no pair can make it fail. `doubt` are the flags of the stored and the asking
    tuple that make each of their pairs doubtful (-1: none).
    """

    steps: tuple[tuple[int, ...], ...]
    total: bool
    doubt: tuple[int, int] = (-1, -1)

    @property
    def cost(self) -> float:
        return sum(_COSTS.get(s[0], 0.2 if s[0] in (AND, OR) else 1.0) for s in self.steps)


@dataclass(frozen=True)
class PairCode:
    """All conjuncts in the order of the predicate, and the registers and masks they need."""

    conjuncts: tuple[CodedConjunct, ...]
    constants: tuple[float, ...]
    registers: int
    masks: int
