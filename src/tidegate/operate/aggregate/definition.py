"""The definition of an aggregate function: a row of the registry.

`sql`, `query`, `plan` and `operate` read these rows, and none of them knows a function by its name.
So a new function is one row and its kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, TypeVar

import pyarrow as pa

from tidegate.errors import QueryError
from tidegate.operate.aggregate.estimate import KEPT
from tidegate.operate.aggregate.parameter import Constant, Way, Ways
from tidegate.operate.kernels.family import Family
from tidegate.operate.kernels.order import is_ordered
from tidegate.schema import type_name

T = TypeVar("T")

_WORDS = ("no", "one", "two", "three", "four")


@dataclass(frozen=True)
class Rule:
    """The types that an argument may have. Text is read as the type `text`, NULL as `null`."""

    requirement: str
    accepts: Callable[[pa.DataType], bool]
    null: pa.DataType
    text: pa.DataType
    remedy: str | None = None

    def target(self, type_: pa.DataType) -> pa.DataType | None:
        """The type to which such an argument is cast, often its own; None where it is illegal."""
        if pa.types.is_null(type_):
            return self.null
        if pa.types.is_string(type_):
            return self.text
        return type_ if self.accepts(type_) else None


class TextRule(Rule):
    """Text, and what Spark casts to it: every plain value except bytes."""

    def target(self, type_: pa.DataType) -> pa.DataType | None:
        foreign = pa.types.is_nested(type_) or pa.types.is_binary(type_)
        return None if foreign else self.text


def _is_number(type_: pa.DataType) -> bool:
    kinds = pa.types
    return bool(kinds.is_integer(type_) or kinds.is_floating(type_) or kinds.is_decimal(type_))


MOST_ARGUMENTS = 64
"""Of a function that takes any number of columns."""

MOST_KEYS = 8
"""Of ORDER BY inside a call."""

ANYTHING = Rule("the argument must be there", lambda _: True, null=pa.string(), text=pa.string())
NUMBER = Rule(
    "the argument must be a number",
    _is_number,
    null=pa.float64(),
    text=pa.float64(),
    remedy="CAST it to one, or use COUNT, MIN or MAX.",
)
ORDERED = Rule("the argument must have an order", is_ordered, null=pa.string(), text=pa.string())
TIME_OR_NUMBER = Rule(
    "the argument must be a number, a date or a time",
    lambda type_: _is_number(type_) or bool(pa.types.is_temporal(type_)),
    null=pa.float64(),
    text=pa.float64(),
)
TEXT = TextRule("the argument must be text", is_ordered, null=pa.string(), text=pa.string())
BOOLEAN = Rule(
    "the argument must be boolean",
    lambda type_: bool(pa.types.is_boolean(type_)),
    null=pa.bool_(),
    text=pa.bool_(),
    remedy="Compare it with something.",
)


@dataclass(frozen=True, kw_only=True)
class AggregateFunction:
    """One aggregate function: a row of `registry.TABLE`.

    - `name` is its name in plans and checkpoints. `python` is its name as `tg.name`; None where it
      has none. `sql` has its names in SQL, in upper case, the usual one first; none where only
      another function leads to it, as COUNT does to COUNT(DISTINCT x). `doc` is one line for users.
    - `arguments` are the rules of its columns. The first `least` must be given, by default all;
      with 0 a star may be written for none. `parameters` are constants that follow the columns.
    - `family` makes its kernels; it is called with the types of the columns, then the parameters.
    - `means` names the function and the parameters that this function is a synonym of.
    - `distinct` names the function that f(DISTINCT x) is: itself where repetitions change nothing,
      None where f(DISTINCT x) is not allowed.
    - `skips_null`: a tuple whose last argument is NULL does not count. FILTER (WHERE c) then sets
      the arguments to NULL where c does not hold. Otherwise `filtered` names a function with one
      more argument, which is NULL there.
    - `decides` is the place of the argument that is evaluated first. Where it is NULL the tuple
      does not count, and the others are not evaluated. None: all are evaluated.
    - `in_order`: its kernels also get the columns of the total order, after its own.
    - `edge`: its value is that of the first (0) or the last (-1) tuple, whatever the others are.
    - `holistic`: exact, but its state grows with the number of values.
    - `spilled`: from batch to batch its state is kept on disk only.
    - `by_user`: it is a user's code, so that a tuple is much work.
    - `estimate` says how WITH ERROR answers it, a value of `estimate.py`; by default exactly,
      because panes keep its state anyway. `unsampled` says why WITH ERROR refuses it, if it does.
    - `scales`: its value grows with the number of tuples, so a value from some of the tuples is
      scaled up. `unscaled` says why some of the tuples give no answer, if they do not.
    - `form` is how messages write a call, with `{inside}` for the arguments.
    """

    name: str
    python: str | None
    doc: str
    family: Callable[..., Family]
    sql: tuple[str, ...] = ()
    arguments: tuple[Rule, ...] = ()
    least: int | None = None
    parameters: tuple[Constant, ...] = ()
    means: tuple[str, tuple[float, ...]] | None = None
    distinct: str | None = None
    skips_null: bool = True
    filtered: str | None = None
    decides: int | None = None
    in_order: bool = False
    edge: int | None = None
    holistic: bool = False
    spilled: bool = False
    by_user: bool = False
    estimate: str = KEPT
    unsampled: str | None = None
    scales: bool = False
    unscaled: str | None = None
    form: str | None = None

    @property
    def where(self) -> str:
        """Where messages about a parameter point."""
        return self.sql[0] if self.sql else self.name.upper()

    @property
    def star(self) -> bool:
        """Whether a call may have no argument, which stands for whole tuples."""
        return self.least == 0

    def takes(self, count: int) -> bool:
        """Whether a call may have so many columns."""
        least = len(self.arguments) if self.least is None else self.least
        return least <= count <= len(self.arguments)

    @property
    def arity(self) -> str:
        """How many columns and parameters it takes at most, in words."""
        most = len(self.arguments) + len(self.parameters)
        count = _WORDS[most] if most < len(_WORDS) else str(most)
        return f"takes {count} argument{'' if most == 1 else 's'}"

    def completed(self, parameters: Sequence[Any]) -> tuple[Any, ...]:
        """Fill in defaults of parameters; QueryError for a value out of bounds."""
        if len(parameters) > len(self.parameters):
            raise QueryError(self.where, self.arity, f"{len(parameters)} parameters")
        return tuple(p.value(v, self.where) for p, v in zip_longest(self.parameters, parameters))

    def width(self, ordered: bool) -> int:
        """How many columns a call may have in its parentheses, with or without ORDER BY."""
        return len(self.arguments)

    def by(
        self, columns: tuple[T, ...], keys: tuple[T, ...], ways: tuple[Way, ...]
    ) -> tuple[str, tuple[T, ...], tuple[Any, ...]] | None:
        """The function, columns and last parameters of a call with ORDER BY; None: not allowed."""
        return None

    def check(self, types: Sequence[pa.DataType]) -> None:
        """Raise QueryError for columns that the kernels cannot take; casts must be done before."""
        if not self.takes(len(types)):
            raise QueryError(self.where, self.arity, str(len(types)))
        for rule, type_ in zip(self.arguments, types, strict=False):
            if rule.target(type_) != type_:
                raise QueryError(self.where, rule.requirement, type_name(type_), rule.remedy)

    def title(self, parameters: Sequence[Any]) -> str:
        """Its name in a plan."""
        return self.name

    def shown(self, parameters: Sequence[Any]) -> list[str]:
        """The parameters as a plan shows them."""
        return [repr(value) for value in parameters]

    def inside(self, parameters: Sequence[Any]) -> tuple[Any, ...] | None:
        """The functions that it computes for a query, if it stands for several; otherwise None."""
        return None

    def written(self, columns: Sequence[str], parameters: Sequence[Any]) -> str:
        """A call as messages write it."""
        inside = ", ".join([*columns, *self.shown(parameters)]) or ("*" if self.star else "")
        if self.form is not None:
            return self.form.format(inside=inside)
        return f"{self.title(parameters)}({inside})"


@dataclass(frozen=True, kw_only=True)
class OrderedFunction(AggregateFunction):
    """A function of one column that takes tuples in the order of keys: f(x ORDER BY y DESC).

    The keys are arguments after the column; their directions (`Way`) are the last parameter. Ties,
    and calls without keys, are in the total order of the tuples.
    """

    least: int | None = 1
    decides: int | None = 0
    in_order: bool = True
    holistic: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", (*self.arguments, *(ORDERED,) * MOST_KEYS))
        object.__setattr__(self, "parameters", (*self.parameters, Ways()))

    def width(self, ordered: bool) -> int:
        return 1

    def by(
        self, columns: tuple[T, ...], keys: tuple[T, ...], ways: tuple[Way, ...]
    ) -> tuple[str, tuple[T, ...], tuple[Any, ...]] | None:
        return self.name, (*columns, *keys), (ways,)

    @property
    def arity(self) -> str:
        most = len(self.parameters)
        return f"takes {_WORDS[most]} argument{'' if most == 1 else 's'}"

    def written(self, columns: Sequence[str], parameters: Sequence[Any]) -> str:
        *constants, ways = parameters
        inside = ", ".join([columns[0], *map(repr, constants)])
        keys = [f"{key}{way.words}" for key, way in zip(columns[1:], ways, strict=True)]
        return f"{self.name}({inside}{' ORDER BY ' if keys else ''}{', '.join(keys)})"


@dataclass(frozen=True, kw_only=True)
class WithinFunction(AggregateFunction):
    """A function whose column may be the key of WITHIN GROUP (ORDER BY x [DESC]).

    `descending` names the function that it is with DESC.
    """

    descending: str

    def width(self, ordered: bool) -> int:
        return 0 if ordered else 1

    def by(
        self, columns: tuple[T, ...], keys: tuple[T, ...], ways: tuple[Way, ...]
    ) -> tuple[str, tuple[T, ...], tuple[Any, ...]] | None:
        if len(ways) != 1:
            raise QueryError(self.where, "WITHIN GROUP must have one key", str(len(ways)))
        return self.descending if ways[0].descending else self.name, columns or keys, ()


@dataclass(frozen=True, kw_only=True)
class DescendingFunction(AggregateFunction):
    """What a function is with WITHIN GROUP (ORDER BY x DESC); `word` is its name in SQL."""

    python: str | None = None
    word: str

    @property
    def where(self) -> str:
        return self.word

    def written(self, columns: Sequence[str], parameters: Sequence[Any]) -> str:
        inside = ", ".join(self.shown(parameters))
        return f"{self.word}({inside}) WITHIN GROUP (ORDER BY {columns[0]} DESC)"


@dataclass(frozen=True, kw_only=True)
class RuledFunction(AggregateFunction):
    """A function whose only parameter is an object that says how it works, as a user's aggregate.

    The object is of the class `rule`, and messages call the function `what`. `titled` gives the
    name of a call in a plan, `shows` what else a plan says, and `made_of` the functions inside it.
    """

    python: str | None = None
    arguments: tuple[Rule, ...] = (ANYTHING,) * MOST_ARGUMENTS
    least: int | None = 0
    skips_null: bool = False
    what: str
    rule: type
    titled: Callable[[Any], str] | None = None
    shows: Callable[[Any], list[str]] = field(default=lambda _: [])
    made_of: Callable[[Any], tuple[Any, ...]] | None = None

    @property
    def star(self) -> bool:
        return False

    def completed(self, parameters: Sequence[Any]) -> tuple[Any, ...]:
        if [isinstance(value, self.rule) for value in parameters] != [True]:
            raise QueryError("aggregate", f"{self.what} needs its {self.rule.__name__}", self.name)
        return tuple(parameters)

    def title(self, parameters: Sequence[Any]) -> str:
        return self.name if self.titled is None else self.titled(parameters[0])

    def shown(self, parameters: Sequence[Any]) -> list[str]:
        return self.shows(parameters[0])

    def inside(self, parameters: Sequence[Any]) -> tuple[Any, ...] | None:
        return None if self.made_of is None else self.made_of(parameters[0])
