"""Typed expression trees: binding builds them, and the kernels evaluate them.

A sum of thousands of terms is a tree thousands of calls deep, so nothing here recurses. Functions
over a tree walk it in `postorder`, which yields the arguments of a call before the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from tidegate.expression.user_function import USER, UserFunction
from tidegate.schema import type_name


@dataclass(frozen=True)
class Column:
    """A column of the table that the expression is evaluated over."""

    name: str
    type: pa.DataType


@dataclass(frozen=True)
class Literal:
    """A constant; the value None is a typed NULL."""

    value: object
    type: pa.DataType


@dataclass(frozen=True, eq=False, repr=False)
class Call:
    """A kernel operation on arguments that already have the types it needs.

    Calls are equal if their trees are. A call is pickled as a flat list, each shared part once.
    """

    op: str
    args: tuple[Expr, ...]
    type: pa.DataType
    total: bool = field(init=False)
    """Whether no row can make it fail."""
    mark: int = field(init=False)
    """A hash of the whole tree, built from those of its arguments; equal trees have equal marks."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", _is_total(self.op, self.args, self.type))
        object.__setattr__(self, "mark", hash((self.op, *map(_mark, self.args))))

    @cached_property
    def shared(self) -> frozenset[int]:
        """The ids of calls in it that are arguments more than once."""
        return shared_calls(self)

    def __eq__(self, other: object) -> bool:
        return _same(self, other) if isinstance(other, Call) else NotImplemented

    def __hash__(self) -> int:
        return self.mark

    def __repr__(self) -> str:
        return f"Call({describe(self)})"

    def __reduce__(self) -> tuple[Callable[..., Expr], tuple[object, ...]]:
        return _assembled, (_listed(self),)


Expr = Column | Literal | Call

SIGNS = dict(
    pair.split(":")
    for pair in (
        "add:+ subtract:- multiply:* divide:/ int_divide:DIV remainder:% eq:= ne:<> lt:< le:<= "
        "gt:> ge:>= null_safe_eq:<=> and:AND or:OR"
    ).split()
)

SAFE = frozenset(
    "eq ne lt le gt ge null_safe_eq in and or not is_null is_true is_false is_nan case coalesce"
    " greatest least like starts_with ends_with contains upper lower length trim ltrim rtrim"
    " substring concat sqrt exp ln log log10 power sin cos tan asin acos atan atan2 radians"
    " degrees sign year month day hour minute second quarter day_of_week weekday week"
    " day_of_year date_trunc unix_micros unix_millis unix_seconds try_cast field bit_and bit_or"
    " bit_xor bit_not second_fraction replace nanvl cbrt rint log1p expm1 hypot cot sinh cosh"
    " tanh shift_left shift_right date_diff".split()
)
CHOICES = frozenset("case coalesce nanvl".split())
"""Operations that choose between arguments; only the first argument is evaluated for every row."""
SAFE_ON_FLOATS = frozenset("add subtract multiply negate abs round".split())


LONGEST_TEXT = 1_000
"""Longer texts of expressions are shortened in messages."""


def postorder(expr: Expr) -> Iterator[Expr]:
    """Every part of an expression after its arguments, left to right, a shared part once."""
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(expr, False)]
    while stack:
        item, ready = stack.pop()
        if ready or not isinstance(item, Call):
            if id(item) not in seen:
                seen.add(id(item))
                yield item
        elif id(item) not in seen:
            stack.append((item, True))
            stack.extend((arg, False) for arg in reversed(item.args))


def shared_calls(expr: Expr) -> frozenset[int]:
    """The ids of calls that are arguments more than once."""
    seen: set[int] = set()
    shared: set[int] = set()
    for part in postorder(expr):
        for arg in part.args if isinstance(part, Call) else ():
            if isinstance(arg, Call):
                (shared if id(arg) in seen else seen).add(id(arg))
    return frozenset(shared)


def rebuilt(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with `change` applied to every part, arguments first; sharing is kept."""
    made: dict[int, Expr] = {}
    for part in postorder(expr):
        new = part
        if isinstance(part, Call):
            args = tuple(made[id(arg)] for arg in part.args)
            if any(one is not other for one, other in zip(args, part.args, strict=True)):
                new = Call(part.op, args, part.type)
        made[id(part)] = change(new)
    return made[id(expr)]


def renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """The expression with columns renamed; names that `names` lacks stay."""

    def change(part: Expr) -> Expr:
        if not isinstance(part, Column):
            return part
        return Column(names.get(part.name, part.name), part.type)

    return rebuilt(expr, change)


def columns_of(expr: Expr) -> tuple[str, ...]:
    """The distinct columns that an expression reads, in order of first appearance."""
    return tuple(dict.fromkeys(p.name for p in postorder(expr) if isinstance(p, Column)))


def column_names(expr: Expr) -> Iterator[str]:
    """Column names in no particular order, maybe repeated; lazy, so callers can stop early."""
    seen: set[int] = set()
    stack = [expr]
    while stack:
        part = stack.pop()
        if isinstance(part, Column):
            yield part.name
        elif isinstance(part, Call) and id(part) not in seen:
            seen.add(id(part))
            stack.extend(part.args)


def is_total(expr: Expr) -> bool:
    """Whether no row can make the expression fail, so that it needs no guard."""
    return not isinstance(expr, Call) or expr.total


def _is_total(op: str, args: Sequence[Expr], type_: pa.DataType) -> bool:
    if not all(is_total(arg) for arg in args):
        return False
    if op in SAFE:
        return True
    if op in SAFE_ON_FLOATS:
        return bool(pa.types.is_floating(type_))
    return op == "cast" and _is_widening(args[0].type, type_)


def _mark(expr: Expr) -> int:
    if isinstance(expr, Call):
        return expr.mark
    try:
        return hash(expr)
    except TypeError:  # a constant of a nested type
        return hash(type(expr))


def _same(one: Call, other: Call) -> bool:
    """Whether two trees are equal; each pair of shared parts is compared once."""
    if one.mark != other.mark:
        return False
    seen: set[tuple[int, int]] = set()
    stack: list[tuple[Expr, Expr]] = [(one, other)]
    while stack:
        left, right = stack.pop()
        if left is right or (id(left), id(right)) in seen:
            continue
        if isinstance(left, Call) and isinstance(right, Call):
            if (left.op, left.type, len(left.args)) != (right.op, right.type, len(right.args)):
                return False
            seen.add((id(left), id(right)))
            stack.extend(zip(left.args, right.args, strict=True))
        elif left != right:
            return False
    return True


Listed = tuple[str, tuple[int, ...], pa.DataType]
"""A call whose arguments are given by their places in a list."""


def _listed(expr: Call) -> list[Column | Literal | Listed]:
    parts: list[Column | Literal | Listed] = []
    places: dict[int, int] = {}
    for part in postorder(expr):
        places[id(part)] = len(parts)
        if isinstance(part, Call):
            parts.append((part.op, tuple(places[id(a)] for a in part.args), part.type))
        else:
            parts.append(part)
    return parts


def _assembled(parts: Iterable[Column | Literal | Listed]) -> Expr:
    made: list[Expr] = []
    for part in parts:
        if isinstance(part, tuple):
            op, places, type_ = part
            made.append(Call(op, tuple(made[place] for place in places), type_))
        else:
            made.append(part)
    return made[-1]


def _is_widening(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_integer(source):
        return bool(
            pa.types.is_floating(target)
            or pa.types.is_string(target)
            or (pa.types.is_integer(target) and target.bit_width >= source.bit_width)
        )
    if pa.types.is_floating(source):
        return bool(pa.types.is_floating(target))
    return bool(pa.types.is_boolean(source) or pa.types.is_date(source))


def describe(expr: Expr) -> str:
    """The expression as a person would write it, shortened in the middle if it is long."""
    texts: dict[int, str] = {}
    for part in postorder(expr):
        args = [texts[id(arg)] for arg in part.args] if isinstance(part, Call) else []
        text = _described(part, args)
        if len(text) > LONGEST_TEXT:
            text = f"{text[: LONGEST_TEXT // 2]} ... {text[-LONGEST_TEXT // 2 + 5 :]}"
        texts[id(part)] = text
    return texts[id(expr)]


def user_function(call: Call) -> UserFunction:
    """The user's function that a call of `USER` calls."""
    first = call.args[0]
    assert isinstance(first, Literal)
    assert isinstance(first.value, UserFunction)
    return first.value


def user_functions(exprs: Iterable[Expr]) -> tuple[UserFunction, ...]:
    """The distinct users' functions that expressions call."""
    parts = (part for expr in exprs for part in postorder(expr))
    calls = (part for part in parts if isinstance(part, Call) and part.op == USER)
    return tuple(dict.fromkeys(user_function(call) for call in calls))


def exact_text(expr: Expr) -> str:
    """A text that identifies the expression, the same in every process. Its length is linear in the
    number of parts.
    """
    places: dict[int, int] = {}
    lines: list[str] = []
    for part in postorder(expr):
        if isinstance(part, Call):
            held = f"{part.op} {[places[id(arg)] for arg in part.args]}"
        else:
            held = repr(part.name if isinstance(part, Column) else (part.value,))
        places[id(part)] = len(lines)
        lines.append(f"{held} {part.type}")
    return "\n".join(lines)


def _described(expr: Expr, args: Sequence[str]) -> str:
    if isinstance(expr, Column):
        return expr.name
    if isinstance(expr, Literal):
        return "NULL" if expr.value is None else show(expr.value)
    if expr.op in SIGNS:
        inner = (
            f"({text})" if _is_signed(arg) else text
            for arg, text in zip(expr.args, args, strict=True)
        )
        return f" {SIGNS[expr.op]} ".join(inner)
    if _is_hidden(expr):
        return args[0]
    if expr.op == USER:
        return f"{user_function(expr).name.upper()}({', '.join(args[1:])})"
    if expr.op in ("cast", "try_cast"):
        return f"{expr.op.upper()}({args[0]} AS {type_name(expr.type)})"
    if expr.op == "case":
        pairs = zip(args[:-1:2], args[1:-1:2], strict=True)
        arms = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
        return f"CASE {arms} ELSE {args[-1]} END"
    return f"{expr.op.upper()}({', '.join(args)})"


def _is_hidden(expr: Call) -> bool:
    """Whether a call is an implicit cast, which the user did not write."""
    return expr.op == "cast" and _is_widening(expr.args[0].type, expr.type)


def _is_signed(expr: Expr) -> bool:
    """Whether an expression is written with an operator, so that it may need parentheses."""
    while isinstance(expr, Call) and _is_hidden(expr):
        expr = expr.args[0]
    return isinstance(expr, Call) and expr.op in SIGNS


def show(value: object) -> str:
    """A value, shortened for a message."""
    text = "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
