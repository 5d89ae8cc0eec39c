"""Splits a comparison in a join's predicate into bounds that one side sets for the other.

A comparison is rewritten as a sum of signed parts that is at most zero. Each part uses one side
only, or is constant. If a side has a single part, the rest of the sum bounds that part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa

from tidegate.descent import Step, descend
from tidegate.expression.kind import kind
from tidegate.expression.tree import Call, Expr, Literal, column_names, postorder
from tidegate.plan.join.double import Sum, constant_of, double_of, is_measurable, is_steady

LEFT, RIGHT = 1, 2
BOTH = LEFT | RIGHT

# Moving a part to the other side of a comparison rounds differently than the query does. Bounds are
# widened by this share, so that an index may give too many pairs but never misses one.
_SLACK = 2.0**-48
_SLACK_FLOAT32 = 2.0**-20
_FLIPPED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "ne": "eq"}

Term = tuple[int, Expr]


@dataclass(frozen=True)
class Sides:
    """Finds the side of an expression by its columns."""

    left: Collection[str]

    def of(self, expr: Expr) -> int:
        """LEFT, RIGHT, BOTH, or 0 for a constant."""
        mask = 0
        for name in column_names(expr):
            mask |= LEFT if name in self.left else RIGHT
            if mask == BOTH:
                break
        return mask


@dataclass(frozen=True)
class InequalityBound:
    """A bound for the only part of a side: it is at most (`upper`) or at least a sum.

    `rest` are the parts of the other side in that sum. `greedy` are the sides whose NaN would make
    the greater side of the comparison NaN. The comparison is then true, since NaN is the largest.
    """

    side: int
    value: Expr
    upper: bool
    bound: Sum
    rest: tuple[Term, ...]
    greedy: int
    text: str


@dataclass(frozen=True)
class Inequality:
    """`lesser <= greater`; also stands for `<`, because an index may pass a few pairs too many."""

    lesser: Expr
    greater: Expr
    greedy: int
    text: str

    def reaches(self, sides: Sides) -> list[InequalityBound]:
        """All bounds of single parts: of the comparison as written, then with constants moved.

        Empty if the comparison cannot be split.
        """
        found: list[InequalityBound] = []
        for apart in (False, True):
            parts = descend(_parts(self.lesser, 1, sides, apart))
            others = descend(_parts(self.greater, -1, sides, apart))
            if parts is None or others is None:
                return found
            for reach in self._over([*parts, *others], sides):
                if not any(_alike(reach, known) for known in found):
                    found.append(reach)
        return found

    def _over(self, terms: list[Term], sides: Sides) -> Iterator[InequalityBound]:
        held: dict[int, list[Term]] = {0: [], LEFT: [], RIGHT: []}
        for sign, expr in terms:
            held[sides.of(expr)].append((sign, expr))
        if not held[LEFT] or not held[RIGHT]:
            return
        moved = len(terms) > 2 or sides.of(self.lesser) == BOTH or sides.of(self.greater) == BOTH
        for side, other in ((LEFT, RIGHT), (RIGHT, LEFT)):
            if len(held[side]) != 1:
                continue
            (sign, value), rest = held[side][0], held[other]
            upper = sign > 0
            turned = tuple((-s if upper else s, e) for s, e in rest)
            constant = sum((-s if upper else s) * (_constant(e) or 0.0) for s, e in held[0])
            slack = self._slack() if moved else 0.0
            doubles = tuple((s, d) for s, e in turned if (d := double_of(e)) is not None)
            if double_of(value) is None or len(doubles) != len(turned):
                continue
            floats = any(_is_float(e) for _, e in (*rest, *held[side]))
            bound = Sum(doubles, constant, slack, floats)
            yield InequalityBound(side, value, upper, bound, turned, self.greedy, self.text)

    def _slack(self) -> float:
        narrow = any(_has_float32(e) for e in (self.lesser, self.greater))
        return _SLACK_FLOAT32 if narrow else _SLACK


def inequalities(expr: Expr, text: str, sides: Sides) -> Iterator[Inequality]:
    """The inequalities that hold if a condition is true; none for conditions of another kind."""
    if not isinstance(expr, Call):
        return
    if expr.op == "and":
        for arg in expr.args:
            yield from inequalities(arg, text, sides)
    elif expr.op == "not" and isinstance(expr.args[0], Call) and expr.args[0].op in _FLIPPED:
        inner = expr.args[0]
        flipped = Call(_FLIPPED[inner.op], inner.args, inner.type)
        yield from inequalities(flipped, text, sides)
    elif expr.op in ("lt", "le", "gt", "ge", "eq"):
        yield from _comparison(expr, text, sides)


def _comparison(expr: Call, text: str, sides: Sides) -> Iterator[Inequality]:
    lesser, greater = expr.args if expr.op in ("lt", "le", "eq") else reversed(expr.args)
    if not is_measurable(lesser.type):
        return
    if expr.op == "eq":
        both = sides.of(lesser) & sides.of(greater)
        yield Inequality(lesser, greater, both, text)
        yield Inequality(greater, lesser, both, text)
        return
    greedy = sides.of(greater)
    inner = _inside_abs(lesser)
    if inner is None:
        yield Inequality(lesser, greater, greedy, text)
        return
    yield Inequality(inner, greater, greedy, text)
    yield Inequality(Call("negate", (inner,), inner.type), greater, greedy, text)


def _inside_abs(expr: Expr) -> Expr | None:
    if isinstance(expr, Call) and expr.op == "abs":
        return expr.args[0]
    if isinstance(expr, Call) and _keeps_order(expr):
        return _inside_abs(expr.args[0])
    return None


def _parts(expr: Expr, sign: int, sides: Sides, apart: bool) -> Step[list[Term] | None]:
    """The signed parts of an expression, each of one side or constant; None if it has others.

    With `apart` constants are split off from parts of one side as well.
    """
    mask = sides.of(expr)
    if not mask:
        return None if _constant(expr) is None else [(sign, expr)]
    whole = mask != BOTH and kind(expr.type) != "duration"
    if whole and not (apart and _has_constant(expr)):
        return [(sign, expr)] if is_steady(expr) else None
    if not isinstance(expr, Call):
        return None
    if expr.op == "negate":
        turned: list[Term] | None = yield _parts(expr.args[0], -sign, sides, apart)
        return turned
    if _keeps_order(expr):
        same: list[Term] | None = yield _parts(expr.args[0], sign, sides, apart)
        return same
    if expr.op not in ("add", "subtract") or not _keeps_digits(expr):
        return None
    first = yield _parts(expr.args[0], sign, sides, apart)
    second = yield _parts(expr.args[1], sign if expr.op == "add" else -sign, sides, apart)
    return None if first is None or second is None else first + second


def _has_constant(expr: Expr) -> bool:
    """Whether an expression of one side is a sum with a constant in it."""
    stack = [expr]
    while stack:
        part = stack.pop()
        while isinstance(part, Call) and (part.op == "negate" or _keeps_order(part)):
            part = part.args[0]
        if isinstance(part, Call) and part.op in ("add", "subtract") and _keeps_digits(part):
            if any(next(column_names(arg), None) is None for arg in part.args):
                return True
            stack.extend(part.args)
    return False


def _keeps_order(expr: Call) -> bool:
    """Whether this is a cast between numbers that keeps values, except for rounding."""
    if expr.op != "cast":
        return False
    source, target = expr.args[0].type, expr.type
    pair = (kind(source), kind(target))
    if pair in (("integer", "float"), ("decimal", "float")):
        return bool(target == pa.float64())
    if pair == ("float", "float"):
        return bool(target.bit_width >= source.bit_width)
    if pair == ("decimal", "decimal"):
        return bool(target.scale >= source.scale)
    return pair in (("integer", "integer"), ("integer", "decimal"))


def _keeps_digits(expr: Call) -> bool:
    """Whether a sum is exact: sums of wide decimals lose digits after the point."""
    if not pa.types.is_decimal(expr.type):
        return True
    return all(bool(arg.type.scale <= expr.type.scale) for arg in expr.args)


def _constant(expr: Expr) -> float | None:
    return constant_of(expr) if isinstance(expr, Literal) else None


def _is_float(expr: Expr) -> bool:
    return kind(expr.type) == "float"


def _has_float32(expr: Expr) -> bool:
    return any(part.type == pa.float32() for part in postorder(expr))


def _alike(one: InequalityBound, other: InequalityBound) -> bool:
    return (one.side, one.value, one.rest) == (other.side, other.value, other.rest)
