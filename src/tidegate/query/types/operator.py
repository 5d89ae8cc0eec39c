"""Types and kernels of operators: arithmetic, comparison, logic, IN and CASE."""

from __future__ import annotations

from itertools import groupby

from tidegate.calendar.microsecond import DAY_US
from tidegate.errors import QueryError
from tidegate.expression.digits import (
    WIDEST,
    decimal_of,
    decimal_of_literal,
    result_of,
    work_digits,
)
from tidegate.expression.kind import is_numeric, kind
from tidegate.expression.tree import SIGNS, Call, Expr, Literal
from tidegate.query.types.coercion import (
    BOOL,
    DATE,
    DOUBLE,
    INT,
    LONG,
    NULL,
    SPAN,
    STRING,
    UnknownKernel,
    cast,
    coerce,
    common,
    make,
    wider,
)
from tidegate.query.types.interval import CalendarInterval
from tidegate.schema import TIME, type_name

_ORDERED = ("integer", "float", "decimal", "boolean", "string", "timestamp", "date", "duration")


def arithmetic(op: str, left: Expr, right: Expr, where: str, written: tuple[bool, bool]) -> Expr:
    """Arithmetic (+ - * / %) over numbers, dates and times; `written` marks integer literals."""
    if op in ("add", "subtract"):
        shifted = _temporal(op, left, right, where)
        if shifted is not None:
            return shifted
    types = (left.type, right.type)
    if types == (NULL, NULL):
        return Literal(None, DOUBLE)
    target = None if STRING in types and set(types) <= {STRING, NULL} else wider(*types)
    if target is None or not is_numeric(target):
        got = f"{type_name(types[0])} {SIGNS[op]} {type_name(types[1])}"
        raise QueryError(where, "arithmetic must be over numbers", got, "Add a CAST.")
    if kind(target) == "decimal":
        return _decimal(op, left, right, where, written)
    if op == "divide":
        # Text beside an integer is read as an integer even where the division is of doubles.
        left, right = (coerce(e, target, where) if e.type == STRING else e for e in (left, right))
        target = DOUBLE
    return make(op, (coerce(left, target, where), coerce(right, target, where)), target)


def _decimal(op: str, left: Expr, right: Expr, where: str, written: tuple[bool, bool]) -> Expr:
    sides = []
    for side, is_written, other in ((left, written[0], right), (right, written[1], left)):
        if side.type == NULL:
            sides.append(cast(side, decimal_of(other.type), where))
        elif is_written and isinstance(side, Literal) and isinstance(side.value, int):
            sides.append(cast(side, decimal_of_literal(side.value), where))
        else:
            sides.append(cast(side, decimal_of(side.type), where))
    a, b = sides[0].type, sides[1].type
    type_ = result_of(op, a, b)
    if work_digits(op, a, b, type_) > WIDEST:
        raise UnknownKernel(
            where,
            f"a decimal result must be computed with at most {WIDEST} digits without Spark",
            f"{type_name(a)} {SIGNS[op]} {type_name(b)}",
            "Run with a Spark master, or CAST to fewer digits.",
        )
    return make(op, sides, type_)


def _temporal(op: str, left: Expr, right: Expr, where: str) -> Expr | None:
    kinds = (kind(left.type), kind(right.type))
    if "null" in kinds and set(kinds) & {"date", "timestamp"}:
        return Literal(None, left.type if right.type == NULL else right.type)
    if op == "add" and kinds[1] in ("timestamp", "date") and kinds[0] in ("duration", "integer"):
        left, right, kinds = right, left, (kinds[1], kinds[0])
    if kinds[0] == "date" and kinds[1] == "integer":
        if right.type == LONG:
            return None
        days = coerce(right, INT, where)
        return make("add_days", (left, _negated(days) if op == "subtract" else days), DATE)
    if kinds[1] == "duration":
        if kinds[0] == "duration":
            return make(op, (left, right), SPAN)
        if kinds[0] in ("timestamp", "date"):
            return make(op, (cast(left, TIME, where), right), TIME)
    if op == "subtract" and set(kinds) <= {"date", "timestamp"}:
        return make(op, (cast(left, TIME, where), cast(right, TIME, where)), SPAN)
    return None


def _negated(expr: Expr) -> Expr:
    return make("negate", (expr,), expr.type)


def shift(base: Expr, interval: CalendarInterval, where: str) -> Expr:
    """A date or timestamp plus a constant interval."""
    base = cast(base, TIME, where) if base.type == NULL else base
    if base.type == STRING:
        raise UnknownKernel(
            where, "an interval added to text needs Spark", "string", "CAST the text to TIMESTAMP."
        )
    if kind(base.type) == "duration":
        return make("add", (base, interval.span(where)), SPAN)
    if kind(base.type) not in ("date", "timestamp"):
        got = type_name(base.type)
        raise QueryError(where, "an interval must be added to a date or a timestamp", got)
    if interval.months:
        return make("add_months", (base, Literal(interval.months, INT)), base.type)
    if interval.days_only and base.type == DATE:
        days = interval.micros // DAY_US
        return make("add_days", (base, Literal(days, INT)), DATE)
    return make("add", (cast(base, TIME, where), interval.span(where)), TIME)


def int_divide(left: Expr, right: Expr, where: str) -> Expr:
    """DIV; its result is always a bigint."""
    kinds = {kind(left.type), kind(right.type)}
    if kinds <= {"integer", "decimal"} and "decimal" in kinds:
        a, b = (cast(e, decimal_of(e.type), where) for e in (left, right))
        if work_digits("remainder", a.type, b.type, a.type) > WIDEST:
            raise UnknownKernel(where, "DIV must have fewer digits to run without Spark")
        return make("int_divide", (a, b), LONG)
    if not kinds <= {"integer", "string", "null"} or kinds == {"string"}:
        got = f"{type_name(left.type)} DIV {type_name(right.type)}"
        raise QueryError(where, "DIV must be over integers or decimals", got, "Add a CAST.")
    return make("int_divide", (coerce(left, LONG, where), coerce(right, LONG, where)), LONG)


def compare(op: str, left: Expr, right: Expr, where: str) -> Expr:
    """A comparison (= <> < <= > >= <=>) of two sides cast to their common type."""
    if left.type == NULL and right.type == NULL:
        left = right = Literal(None, STRING)
    target = wider(left.type, right.type)
    if target is None:
        got = f"{type_name(left.type)} and {type_name(right.type)}"
        raise QueryError(
            where, "the two sides of a comparison must have one type", got, "Add a CAST."
        )
    if kind(target) not in _ORDERED and kind(target) != "binary":
        raise UnknownKernel(where, "the values compared must be plain", type_name(target))
    return make(op, (coerce(left, target, where), coerce(right, target, where)), BOOL)


def boolean(expr: Expr, where: str, what: str) -> Expr:
    """An operand that must be a condition."""
    if expr.type in (BOOL, NULL, STRING):
        return coerce(expr, BOOL, where)
    raise QueryError(
        where, f"{what} must be boolean", type_name(expr.type), "Compare it with something."
    )


def connect(op: str, left: Expr, right: Expr, where: str) -> Expr:
    sides = (boolean(left, where, op.upper()), boolean(right, where, op.upper()))
    return make(op, sides, BOOL)


def member(value: Expr, members: list[Expr], where: str) -> Expr:
    """IN a list, tested in list order: after a match, later members are not evaluated.

    Adjacent constants are searched at once, other members one by one.
    """
    type_ = common([value.type, *(m.type for m in members)], where, "the members of IN")
    if type_ == NULL:
        return Literal(None, BOOL)
    if kind(type_) not in _ORDERED:
        raise UnknownKernel(where, "the values of IN must be plain", type_name(type_))
    value = coerce(value, type_, where)
    members = [coerce(m, type_, where) for m in members]
    tests: list[Expr] = []
    for constant, run in groupby(members, lambda member: isinstance(member, Literal)):
        sides = list(run)
        looks = [("in", sides)] if constant else [("eq", [side]) for side in sides]
        tests += [make(op, (value, *others), BOOL) for op, others in looks]
    result = tests[0]
    for test in tests[1:]:
        result = make("or", (result, test), BOOL)
    return result


def choose(pairs: list[tuple[Expr, Expr]], default: Expr | None, where: str) -> Expr:
    """CASE WHEN ... THEN ... ELSE, with all values cast to their common type."""
    values = [value for _, value in pairs] + [default or Literal(None, NULL)]
    type_ = common([v.type for v in values], where, "the branches of CASE")
    if type_ == NULL:
        return Literal(None, NULL)
    args: list[Expr] = []
    for condition, value in pairs:
        args += [boolean(condition, where, "a condition of CASE"), cast(value, type_, where)]
    return Call("case", (*args, cast(values[-1], type_, where)), type_)
