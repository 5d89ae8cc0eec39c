"""Compiles the predicate of a join into a program: which conjuncts run compiled, and their inputs.

A part of a conjunct that reads one side only is computed once per tuple, by the same kernels that
evaluate it on pairs. The rest of the conjunct becomes steps: arithmetic of integers and floats,
comparisons, AND, OR and NOT. A conjunct with anything else is evaluated by the kernels, on the
pairs that the compiled ones leave.

No failure is hidden and none is added: after a conjunct that may fail and is not compiled, nothing
is compiled.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from tidegate.expression import pair_code as step
from tidegate.expression.kind import kind
from tidegate.expression.pair_code import CodedConjunct, PairCode
from tidegate.expression.tree import Call, Column, Expr, Literal, is_total, postorder
from tidegate.expression.user_function import USER

EXACT = 2.0**53 - 1
"""Integers up to this size are exact as doubles, and no other integer is rounded to one of them."""

_MOST_PARTS = 64
"""A conjunct with more parts over both sides is not compiled: its registers overflow the cache."""

_COMPARISONS = {
    "eq": step.EQ,
    "ne": step.NE,
    "lt": step.LT,
    "le": step.LE,
    "gt": step.GT,
    "ge": step.GE,
}
_OPPOSITE = {step.EQ: step.NE, step.LT: step.GE, step.LE: step.GT}
_OPPOSITE |= {b: a for a, b in _OPPOSITE.items()}
_MIRRORED = {step.LT: step.GT, step.GT: step.LT, step.LE: step.GE, step.GE: step.LE}
_ARITHMETIC = {
    "add": step.ADD,
    "subtract": step.SUBTRACT,
    "multiply": step.MULTIPLY,
    "divide": step.DIVIDE,
    "negate": step.NEGATE,
    "abs": step.ABS,
    "sqrt": step.ROOT,
}

STORED, ASKING = 0, 1


@dataclass(frozen=True)
class ProgramInput:
    """An expression of one side that a program reads, as a number or as a code.

    Texts and decimals have no exact number. They are read as codes, which compare like the values,
    each with the code of the input at the same place of the other side.
    """

    expr: Expr
    coded: bool


@dataclass(frozen=True)
class Operand:
    """An operand of a step: an input of the stored or the asking tuple, a register, a constant."""

    shelf: str
    number: int


@dataclass(frozen=True)
class PairProgram:
    """The compiled conjuncts of a predicate, for new tuples that ask the stored ones of a side.

    `inputs` has the inputs of the stored and of the asking tuples, numbers before codes; both have
    as many codes. Flag i of a side says that its inputs `known[side][i]` are not NULL. `doubts` has
    for each conjunct the inputs, by side, whose values must be certain. `compiled` numbers the
    compiled conjuncts, `rest` has the others.
    """

    code: PairCode
    inputs: tuple[tuple[ProgramInput, ...], tuple[ProgramInput, ...]]
    known: tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]
    doubts: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    compiled: tuple[int, ...]
    rest: tuple[Expr, ...]

    @staticmethod
    def of(
        predicate: Sequence[Expr], sides: tuple[Collection[str], Collection[str]], side: int
    ) -> PairProgram | None:
        """The program of a predicate; `sides` are the column names. None if nothing compiles."""
        builder, compiled = _Builder(sides, side), list[int]()
        for number, conjunct in enumerate(predicate):
            if builder.add(conjunct):
                compiled.append(number)
            elif not is_total(conjunct):
                break
        if not compiled:
            return None
        rest = tuple(c for i, c in enumerate(predicate) if i not in compiled)
        return builder.program(tuple(compiled), rest)


class _Unfit(Exception):
    """Raised for a conjunct with a part for which there is no step."""


@dataclass
class _Draft:
    """A conjunct while it is compiled: its steps, and the operands that hold its parts."""

    steps: list[tuple[int, int, Operand, Operand, tuple[int, int]]] = field(default_factory=list)
    values: dict[Expr, Operand] = field(default_factory=dict)
    uses: dict[Operand, frozenset[Operand]] = field(default_factory=dict)
    certain: set[Operand] = field(default_factory=set)
    registers: int = 0
    masks: int = 1


_NOTHING = Operand("none", 0)


class _Builder:
    """Compiles conjuncts one after the other; a conjunct that does not fit leaves unused inputs."""

    def __init__(self, sides: tuple[Collection[str], Collection[str]], side: int) -> None:
        self._names = (sides[side], sides[1 - side])
        self._sides = dict[int, frozenset[int]]()
        self._numbers: tuple[list[Expr], list[Expr]] = ([], [])
        self._codes = list[tuple[Expr, Expr]]()
        self._constants = list[float]()
        self._known: tuple[list[frozenset[Operand]], list[frozenset[Operand]]] = ([], [])
        self._drafts = list[tuple[_Draft, bool]]()
        self._draft = _Draft()

    def add(self, conjunct: Expr) -> bool:
        """Compile one more conjunct; false where it has a part without a step."""
        self._draft = _Draft()
        try:
            self._place(conjunct)
            self._truth(conjunct, True, 0)
        except _Unfit:
            return False
        self._drafts.append((self._draft, is_total(conjunct)))
        return True

    def program(self, compiled: tuple[int, ...], rest: tuple[Expr, ...]) -> PairProgram:
        conjuncts = tuple(
            CodedConjunct(tuple(self._step(*s) for s in draft.steps), total)
            for draft, total in self._drafts
        )
        drafts = [draft for draft, _ in self._drafts]
        registers = max(d.registers for d in drafts)
        code = PairCode(conjuncts, tuple(self._constants), registers, max(d.masks for d in drafts))
        stored, asking = (
            tuple(ProgramInput(e, coded=False) for e in self._numbers[i])
            + tuple(ProgramInput(pair[i], coded=True) for pair in self._codes)
            for i in (STORED, ASKING)
        )
        known = [tuple(self._columns(u, i) for u in self._known[i]) for i in (STORED, ASKING)]
        doubts = tuple(
            (self._columns(d.certain, STORED), self._columns(d.certain, ASKING)) for d in drafts
        )
        inputs, of_flags = (stored, asking), (known[STORED], known[ASKING])
        return PairProgram(code, inputs, of_flags, doubts, compiled, rest)

    def _place(self, conjunct: Expr) -> None:
        """Note which sides each part of a conjunct reads."""
        shared = 0
        for part in postorder(conjunct):
            sides = frozenset[int]()
            if isinstance(part, Call):
                if part.op == USER:
                    raise _Unfit
                sides = frozenset().union(*(self._sides[id(a)] for a in part.args))
            elif isinstance(part, Column):
                sides = frozenset(i for i in (STORED, ASKING) if part.name in self._names[i])
                if len(sides) != 1:
                    raise _Unfit
            self._sides[id(part)] = sides
            shared += len(sides) > 1
        if shared > _MOST_PARTS or not self._sides[id(conjunct)]:
            raise _Unfit

    def _truth(self, expr: Expr, wanted: bool, to: int) -> None:
        """Add steps that set mask `to` for the pairs where a condition has the `wanted` value.

        NOT is pushed down to comparisons by asking for the opposite value: a mask has no NULL, so
        inverting one would turn an unknown comparison into TRUE.
        """
        self._draft.masks = max(self._draft.masks, to + 1)
        sides = self._sides[id(expr)]
        if len(sides) == 1 and pa.types.is_boolean(expr.type):
            (side,) = sides
            found = self._input(expr, side)
            self._compare(step.EQ, found, self._constant(float(wanted)), to)
        elif not isinstance(expr, Call):
            raise _Unfit
        elif expr.op in ("and", "or"):
            what = step.AND if (expr.op == "and") == wanted else step.OR
            for place, arg in enumerate(expr.args):
                self._truth(arg, wanted, to + 1 + place)
            one, two = Operand("mask", to + 1), Operand("mask", to + 2)
            self._draft.steps.append((what, to, one, two, (-1, -1)))
        elif expr.op == "not":
            self._truth(expr.args[0], not wanted, to)
        elif expr.op in _COMPARISONS:
            what = _COMPARISONS[expr.op]
            self._compare(what if wanted else _OPPOSITE[what], *self._compared(expr), to)
        else:
            raise _Unfit

    def _compared(self, expr: Call) -> tuple[Operand, Operand]:
        """The operands of a comparison; as codes where the values have no exact numbers."""
        one, two = expr.args
        sides = self._sides[id(one)], self._sides[id(two)]
        if sorted(map(len, sides)) == [1, 1] and sides[0] != sides[1] and not _is_small(one.type):
            if not _has_order(one.type):
                raise _Unfit
            shelves = ("code", "asking code")
            pair = (one, two) if sides[0] == {STORED} else (two, one)
            if pair not in self._codes:
                self._codes.append(pair)
            number = self._codes.index(pair)
            found = [Operand(shelves[next(iter(side))], number) for side in sides]
            for operand in found:
                self._draft.uses[operand] = frozenset([operand])
            # A value that cannot be computed for a tuple makes its pairs doubtful.
            self._draft.certain |= {o for o, e in zip(found, expr.args) if not is_total(e)}
            return found[0], found[1]
        return self._value(one), self._value(two)

    def _compare(self, what: int, one: Operand, two: Operand, to: int) -> None:
        if not _is_row(one) and _is_row(two):
            what, one, two = _MIRRORED.get(what, what), two, one
        uses = self._uses(one) | self._uses(two)
        flags = self._flag(uses, STORED), self._flag(uses, ASKING)
        self._draft.steps.append((what, to, one, two, flags))

    def _flag(self, uses: frozenset[Operand], side: int) -> int:
        """The number of the flag that says that some inputs of a side are not NULL; -1 for none."""
        mine = frozenset(u for u in uses if _is_row(u) == (side == STORED))
        if not mine:
            return -1
        if mine not in self._known[side]:
            self._known[side].append(mine)
        return self._known[side].index(mine)

    def _value(self, expr: Expr) -> Operand:
        """The operand that holds a number; equal parts of a conjunct share one."""
        if expr not in self._draft.values:
            self._draft.values[expr] = self._made(expr)
        return self._draft.values[expr]

    def _made(self, expr: Expr) -> Operand:
        if isinstance(expr, Literal):
            return self._constant(_number(expr))
        if not _is_number(expr.type):
            raise _Unfit
        sides = self._sides[id(expr)]
        if len(sides) == 1:
            return self._input(expr, next(iter(sides)))
        if not isinstance(expr, Call):
            raise _Unfit
        if expr.op == "cast":
            return self._cast(expr.args[0], expr.type)
        if expr.op not in _ARITHMETIC or (expr.op == "divide" and not _is_float(expr.type)):
            raise _Unfit
        args = [self._value(arg) for arg in expr.args]
        if expr.op in ("add", "multiply") and not _is_row(args[0]):
            args.reverse()
        made = self._register(_ARITHMETIC[expr.op], *args)
        return self._fitted(made, expr.type)

    def _cast(self, source: Expr, type_: pa.DataType) -> Operand:
        """A cast between integers and floats; there is no step from floats to integers."""
        made = self._value(source)
        if _is_float(source.type) and not _is_float(type_):
            raise _Unfit
        if source.type.bit_width <= type_.bit_width and _is_float(source.type) == _is_float(type_):
            return made
        return made if type_ == pa.float64() else self._fitted(made, type_)

    def _fitted(self, made: Operand, type_: pa.DataType) -> Operand:
        """Bring a result to its type: round to float32, or check that an integer fits."""
        if type_ == pa.float64():
            return made
        if type_ == pa.float32():
            return self._register(step.SINGLE, made)
        limit = self._constant(min(EXACT, 2.0 ** (type_.bit_width - 1) - 1))
        self._draft.steps.append((step.CHECK, 0, made, limit, (-1, -1)))
        return made

    def _register(self, what: int, *args: Operand) -> Operand:
        made = Operand("register", self._draft.registers)
        self._draft.registers += 1
        self._draft.uses[made] = frozenset().union(*(self._uses(a) for a in args))
        one, two = (*args, _NOTHING)[:2]
        self._draft.steps.append((what, made.number, one, two, (-1, -1)))
        return made

    def _input(self, expr: Expr, side: int) -> Operand:
        numbers = self._numbers[side]
        if expr not in numbers:
            numbers.append(expr)
        found = Operand(("stored", "asking")[side], numbers.index(expr))
        self._draft.uses[found] = frozenset([found])
        self._draft.certain.add(found)
        return found

    def _constant(self, value: float) -> Operand:
        same = (i for i, v in enumerate(self._constants) if repr(v) == repr(value))
        number = next(same, len(self._constants))
        if number == len(self._constants):
            self._constants.append(value)
        return Operand("constant", number)

    def _uses(self, operand: Operand) -> frozenset[Operand]:
        return self._draft.uses.get(operand, frozenset())

    def _step(
        self, what: int, to: int, one: Operand, two: Operand, flags: tuple[int, int]
    ) -> tuple[int, ...]:
        """A step as numbers; see `pair_code.STEP`."""
        rows = len(self._numbers[STORED]) + len(self._codes)
        target = to if what >= step.EQ else rows + to
        return (what, target, self._at(one), self._at(two), *flags)

    def _at(self, operand: Operand) -> int:
        stored, asking = map(len, self._numbers)
        codes = len(self._codes)
        begin = {
            "none": 0,
            "mask": 0,
            "stored": 0,
            "code": stored,
            "register": stored + codes,
            "asking": 0,
            "asking code": asking,
            "constant": asking + codes,
        }[operand.shelf]
        at = begin + operand.number
        return -1 - at if operand.shelf in ("asking", "asking code", "constant") else at

    def _columns(self, uses: Collection[Operand], side: int) -> tuple[int, ...]:
        """The places of some inputs among the inputs of a side, ascending."""
        mine = (u for u in uses if _is_row(u) == (side == STORED))
        return tuple(sorted(self._at(u) if side == STORED else -1 - self._at(u) for u in mine))


def _is_row(operand: Operand) -> bool:
    return operand.shelf in ("stored", "code", "register")


def _is_float(type_: pa.DataType) -> bool:
    return bool(pa.types.is_float32(type_) or pa.types.is_float64(type_))


def _is_number(type_: pa.DataType) -> bool:
    return _is_float(type_) or bool(pa.types.is_signed_integer(type_))


def _is_small(type_: pa.DataType) -> bool:
    """Whether every value of a type is exact as a double."""
    return _is_float(type_) or (_is_number(type_) and type_.bit_width <= 32)


def _has_order(type_: pa.DataType) -> bool:
    """Whether values of a type have codes."""
    return kind(type_) in ("integer", "decimal", "boolean", "string", "timestamp", "date", "binary")


def _number(expr: Literal) -> float:
    if not _is_number(expr.type) or not isinstance(expr.value, int | float):
        raise _Unfit
    if isinstance(expr.value, int) and abs(expr.value) > EXACT:
        raise _Unfit
    return float(expr.value)
