"""GROUPING SETS, ROLLUP and CUBE: one aggregate grouped by several sets of keys.

Every tuple is read once per set, with NULL for the keys that are not in the set. The set's number
is a key too. So such a NULL and a NULL of a tuple are in different groups, and no group has tuples
of two sets. Work and state are those of as many aggregates as there are sets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TypeVar

from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.query.aggregate import AggregateCall
from tidegate.query.expression import Expression
from tidegate.query.name import NamedExpr, column, is_plain, spark_name
from tidegate.query.node.node import Aggregate, Node, Project, Union

T = TypeVar("T")

MOST_SETS = 64
"""Each set reads all tuples once more."""

GROUPING_ID = "grouping_id"

Sets = tuple[frozenset[str], ...]
"""For each set, the names of its keys."""


@dataclass(frozen=True)
class GroupingSets:
    """Several sets of columns, as an argument of `group_by`."""

    sets: tuple[tuple[str | Expression, ...], ...]


def rollup(*columns: str | Expression) -> GroupingSets:
    """Group by all of these columns, then by all but the last, and so on down to none."""
    return GroupingSets(tuple(rollup_of(columns)))


def cube(*columns: str | Expression) -> GroupingSets:
    """Every subset of these columns, from all of them to none."""
    return GroupingSets(tuple(cube_of(columns)))


def grouping_sets(*sets: Iterable[str | Expression]) -> GroupingSets:
    """Exactly these sets of columns; an empty set is one group for all tuples."""
    if any(isinstance(given, str | Expression) for given in sets):
        raise QueryError(
            "grouping_sets",
            "takes lists of columns",
            repr(next(g for g in sets if isinstance(g, str | Expression))),
            'Write tg.grouping_sets(["a", "b"], ["a"], []).',
        )
    return GroupingSets(tuple(tuple(given) for given in sets))


def rollup_of(parts: Sequence[T]) -> list[tuple[T, ...]]:
    """The prefixes of a list, the longest first."""
    return [tuple(parts[:size]) for size in range(len(parts), -1, -1)]


def cube_of(parts: Sequence[T]) -> list[tuple[T, ...]]:
    """The subsets of a list, the largest first."""
    sizes = range(len(parts), -1, -1)
    return [chosen for size in sizes for chosen in combinations(parts, size)]


def crossed(sides: Iterable[Sequence[Collection[str]]]) -> Sets:
    """All unions of one set from every side; raises if a set comes out twice."""
    sets = tuple(frozenset().union(*chosen) for chosen in product(*sides))
    if len(sets) > MOST_SETS:
        raise QueryError("GROUP BY", f"at most {MOST_SETS} grouping sets", str(len(sets)))
    twice = [s for n, s in enumerate(sets) if s in sets[:n]]
    if twice:
        got = f"({', '.join(sorted(twice[0]))}) twice"
        raise QueryError("GROUP BY", "each grouping set may be there once", got, "Leave one out.")
    return sets


def id_of(held: frozenset[str], keys: Sequence[str]) -> int:
    """Spark's number of a set: one bit per key, the first highest, 1 if it is not in the set."""
    return sum((key not in held) << place for place, key in enumerate(reversed(keys)))


def by_sets(
    aggregate: Callable[..., Aggregate],
    child: Node,
    keys: Sequence[NamedExpr],
    calls: Sequence[tuple[str, AggregateCall]],
    sets: Sets,
    id_name: str = GROUPING_ID,
) -> Aggregate:
    """The aggregate over all sets; `id_name` is its last key, the number of the set.

    `aggregate` builds an aggregate from a child, keys and calls.
    """
    names = [name for name, _ in keys]
    arguments = _argument_names([a for _, call in calls for a in call.arguments])
    held = [(name, argument) for argument, name in arguments.items()]
    sides: list[Node] = []
    for one in sets:
        shown = [
            # CASE WHEN FALSE is a NULL of the key's own type; a bare NULL would have none.
            (_hidden(n), e if n in one else exp.Case(ifs=[exp.If(this=exp.false(), true=e)]))
            for n, e in keys
        ]
        number = exp.cast(exp.Literal.number(id_of(one, names)), "BIGINT", dialect="spark")
        sides.append(Project(child, (*shown, (_hidden(id_name), number), *held)))
    moved = [(n, c.over([column(arguments[a]) for a in c.arguments])) for n, c in calls]
    return aggregate(
        Union(tuple(sides)) if len(sides) > 1 else sides[0],
        tuple((name, column(_hidden(name))) for name in (*names, id_name)),
        tuple(moved),
    )


def grouping_bits(id_name: str, keys: Sequence[str], asked: Sequence[str]) -> exp.Expression:
    """The bits of some keys in a set's number, the first of these keys highest."""
    if list(asked) == list(keys):
        return column(id_name)
    terms: list[exp.Expression] = []
    for place, key in enumerate(reversed(asked)):
        shift = exp.Literal.number(2 ** (len(keys) - 1 - keys.index(key)))
        whole = exp.IntDiv(this=column(id_name), expression=shift)
        bit = exp.paren(exp.Mod(this=exp.paren(whole), expression=exp.Literal.number(2)))
        terms.append(exp.Mul(this=bit, expression=exp.Literal.number(2**place)) if place else bit)
    total = terms[0]
    for term in terms[1:]:
        total = exp.Add(this=total, expression=term)
    return total


def _hidden(name: str) -> str:
    return f"by {name}"


def _argument_names(arguments: Sequence[exp.Expression]) -> dict[exp.Expression, str]:
    """A name for each distinct argument; a column keeps its own."""
    names: dict[exp.Expression, str] = {}
    for argument in arguments:
        if argument not in names:
            plain = is_plain(argument) and argument.name.lower() not in _RESERVED
            wanted = argument.name if plain else f"of {spark_name(argument)}"
            taken = {name.lower() for name in names.values()}
            names[argument] = wanted if wanted.lower() not in taken else f"of {len(names)}"
    return names


_RESERVED = ("ts", "window_start", "window_end")
