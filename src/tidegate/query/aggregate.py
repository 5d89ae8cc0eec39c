"""Aggregate calls, and the functions that build them from SQL and Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, reduce
from inspect import Parameter as Slot
from inspect import Signature
from typing import Any, NoReturn

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.operate.aggregate.definition import (
    AggregateFunction,
    OrderedFunction,
    Rule,
    WithinFunction,
)
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.parameter import Constant, Way, Ways
from tidegate.operate.aggregate.registry import find, find_python
from tidegate.operate.aggregate.user import Aggregator
from tidegate.query.expression import Expression, to_node
from tidegate.query.name import expression_text
from tidegate.query.surface import habit
from tidegate.schema import type_name

Argument = str | Expression
"""The argument of an aggregate: a column name or an expression."""


@dataclass(frozen=True, repr=False)
class AggregateCall:
    """One aggregate: a function of the registry, applied to expressions.

    `parameters` are the constants of the call; missing ones get their defaults. A function that is
    another word for one becomes that one.
    """

    kind: str
    arguments: tuple[exp.Expression, ...] = ()
    parameters: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        definition = self.definition
        if not definition.takes(len(self.arguments)):
            raise QueryError(self.kind, definition.arity, str(len(self.arguments)))
        kind, fixed = definition.means or (self.kind, ())
        parameters = find(kind).completed((*self.parameters, *fixed))
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "parameters", parameters)

    @property
    def definition(self) -> AggregateFunction:
        """The function's entry in the registry."""
        return find(self.kind)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self.definition.written(
            [expression_text(a) for a in self.arguments], self.parameters
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise habit.stranger("aggregate", name, habit.AGGREGATE, (), habit.AFTER_AGG)

    def _computed_with(self, *_: object) -> NoReturn:
        raise QueryError(
            "aggregate", "stands alone in agg(), under a name", repr(self), habit.AFTER_AGG
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _computed_with
    __truediv__ = __rtruediv__ = __mod__ = __neg__ = __pow__ = _computed_with
    __gt__ = __ge__ = __lt__ = __le__ = _computed_with

    @cached_property
    def _text(self) -> str:
        texts = [a.sql(dialect="spark", normalize_functions="lower") for a in self.arguments]
        return self.definition.written(texts, self.parameters)

    @property
    def python(self) -> str:
        """The call as a Python program would write it, if its arguments are columns."""
        texts = [f'"{a.name}"' if isinstance(a, exp.Column) else "..." for a in self.arguments]
        return f"{self.definition.python or self.kind}({', '.join(texts)})"

    def over(self, arguments: Sequence[exp.Expression]) -> AggregateCall:
        """The same call on other arguments."""
        return replace(self, arguments=tuple(arguments))

    def coerced(self, types: Sequence[pa.DataType]) -> AggregateCall:
        """The call with Spark's implicit casts; raises for types that it cannot take."""
        given = zip(self.arguments, types, self.definition.arguments, strict=False)
        return self.over([self._coerced_argument(*argument) for argument in given])

    def guarded(self, can_fail: Callable[[exp.Expression], bool]) -> AggregateCall:
        """The call, evaluating what can fail only where the deciding argument is not NULL."""
        if self.definition.decides is None:
            return self
        first = self.arguments[self.definition.decides]
        given = exp.not_(exp.Is(this=exp.paren(first), expression=exp.null()))
        made = [
            only_where([given], a) if a is not first and can_fail(a) else a for a in self.arguments
        ]
        return self.over(made)

    def function(
        self, name: str, columns: tuple[str, ...], types: Sequence[pa.DataType]
    ) -> Function:
        """What the operator computes; `columns` hold the coerced arguments."""
        return Function(name, self.kind, columns, tuple(types), self.parameters)

    def _coerced_argument(
        self, argument: exp.Expression, type_: pa.DataType, rule: Rule
    ) -> exp.Expression:
        target = rule.target(type_)
        if target is None:
            remedy = self._in_seconds(argument, type_) or rule.remedy
            raise QueryError(str(self), rule.requirement, self._got(argument, type_), remedy)
        if target == type_:
            return argument
        return exp.cast(argument, type_name(target), dialect="spark")

    def _in_seconds(self, argument: exp.Expression, type_: pa.DataType) -> str | None:
        """Advice to aggregate a time, or a difference of times, as a number of seconds."""
        parts = [argument]
        if pa.types.is_duration(type_) and isinstance(argument, exp.Sub):
            parts = [argument.this, argument.expression]
        elif not pa.types.is_timestamp(type_):
            return None
        texts = [f"unix_micros({expression_text(part)})" for part in parts]
        number = f"({' - '.join(texts)}) / 1e6" if len(texts) > 1 else f"{texts[0]} / 1e6"
        arguments = [number if a is argument else expression_text(a) for a in self.arguments]
        return f"In seconds, write {self.definition.written(arguments, self.parameters)}."

    def _got(self, argument: exp.Expression, type_: pa.DataType) -> str:
        """The type of a wrong argument, and which argument it is if there are several."""
        name = type_name(type_)
        if len(self.arguments) == 1:
            return name
        return f"{name} for {argument.sql(dialect='spark', normalize_functions='lower')}"


def only_where(conditions: Sequence[exp.Expression], value: exp.Expression) -> exp.Expression:
    """The value where all conditions are true, else NULL; conditions after the first that is not
    true are not evaluated.

    A plain AND would evaluate the rest after a NULL.
    """
    *first, last = (condition.copy() for condition in conditions)
    sure = [exp.Is(this=exp.paren(c, copy=False), expression=exp.true()) for c in first]
    both = reduce(lambda a, b: exp.And(this=a, expression=b), (*sure, last))
    return exp.Case(ifs=[exp.If(this=both, true=value.copy())])


Builder = Callable[..., AggregateCall]
"""Builds calls of one function: its columns first, then its parameters."""


@cache
def builder(name: str) -> Builder:
    """The Python function of a registered aggregate; `tidegate.<name>` is this."""
    definition = find_python(name)
    if definition is None:
        raise KeyError(name)
    columns = _column_names(definition.width(ordered=False))
    constants = [p for p in definition.parameters if not isinstance(p, Ways)]
    words = _order_words(definition)
    slots = (*columns, *(constant.name for constant in constants))

    def build(*of: object, **named: object) -> AggregateCall:
        given = dict(zip(slots, of, strict=False))
        unknown = [key for key in named if key in given or key not in (*slots, *words)]
        if unknown:
            raise QueryError(name, f"takes {', '.join((*slots, *words))}", unknown[0])
        if len(of) > len(slots):
            raise QueryError(name, definition.arity, str(len(of)))
        given |= named
        first = given.get(columns[0]) if columns else None
        if definition.star and isinstance(first, str) and first == "*":
            given = {}
        arguments = tuple(to_node(given[c]) for c in columns if given.get(c) is not None)
        parameters = tuple(given.get(p.name) for p in constants)
        kind, arguments, more = _in_order(definition, arguments, given)
        return AggregateCall(kind, arguments, (*parameters, *more))

    build.__signature__ = _signature(definition, columns, constants)  # type: ignore[attr-defined]
    build.__name__ = build.__qualname__ = name
    build.__doc__ = definition.doc
    return build


def _order_words(definition: AggregateFunction) -> tuple[str, ...]:
    """The keywords that give the order in which a function takes tuples."""
    if isinstance(definition, OrderedFunction):
        return ("order_by", "descending")
    return ("descending",) if isinstance(definition, WithinFunction) else ()


def _in_order(
    definition: AggregateFunction,
    columns: tuple[exp.Expression, ...],
    given: Mapping[str, object],
) -> tuple[str, tuple[exp.Expression, ...], tuple[Any, ...]]:
    """The kind, columns and extra parameters of a call with the order that the keywords give."""
    by, descending = given.get("order_by"), bool(given.get("descending"))
    keys = tuple(
        to_node(k) for k in (by if isinstance(by, list | tuple) else (by,)) if by is not None
    )
    if descending and isinstance(definition, OrderedFunction) and not keys:
        raise QueryError(
            definition.where, "descending needs order_by", "none", 'Write order_by="ts".'
        )
    ways = (Way(descending, not descending),) * max(len(keys), int(descending))
    made = definition.by(columns, keys, ways) if ways else None
    return made or (definition.name, columns, ())


def _column_names(count: int) -> tuple[str, ...]:
    return ("of",) if count == 1 else tuple("xyzuvw"[:count])


def _signature(
    definition: AggregateFunction, columns: Sequence[str], constants: Sequence[Constant]
) -> Signature:
    """The signature that `help` shows: columns, parameters with defaults, then the order."""
    needed = None if definition.star else Slot.empty
    slots = [_slot(name, Argument, needed) for name in columns]
    for constant in constants:
        default = Slot.empty if constant.default is None else constant.default
        slots.append(_slot(constant.name, constant.python_type, default))
    kinds = {"order_by": (Argument | Sequence[Argument] | None, None), "descending": (bool, False)}
    for word in _order_words(definition):
        annotation, default = kinds[word]
        slots.append(Slot(word, Slot.KEYWORD_ONLY, annotation=annotation, default=default))
    return Signature(slots, return_annotation=AggregateCall)


def _slot(name: str, annotation: object, default: object) -> Slot:
    return Slot(name, Slot.POSITIONAL_OR_KEYWORD, annotation=annotation, default=default)


def aggregate(function: Aggregator, *of: Argument) -> AggregateCall:
    """A call of the user's own aggregate on these arguments."""
    if not isinstance(function, Aggregator):
        raise QueryError("aggregate", "the function must be an Aggregator", repr(function))
    return AggregateCall("user", tuple(to_node(a) for a in of), (function,))


approx_count_distinct = builder("approx_count_distinct")
approx_percentile = builder("approx_percentile")
array_agg = builder("array_agg")
bool_and = builder("bool_and")
bool_or = builder("bool_or")
collect_set = builder("collect_set")
corr = builder("corr")
count = builder("count")
count_distinct = builder("count_distinct")
count_if = builder("count_if")
covar_pop = builder("covar_pop")
covar_samp = builder("covar_samp")
first = builder("first")
last = builder("last")
max_ = builder("max")
max_by = builder("max_by")
mean = avg = builder("mean")
median = builder("median")
min_ = builder("min")
min_by = builder("min_by")
mode = builder("mode")
percentile_cont = builder("percentile_cont")
percentile_disc = builder("percentile_disc")
quantile = builder("quantile")
stddev = builder("stddev")
string_agg = builder("string_agg")
sum_ = builder("sum")
var = builder("var")
