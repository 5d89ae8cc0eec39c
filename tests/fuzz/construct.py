"""Scripts that have a construct for sure: over a stream or a query, and below another operator.

Half of those in which it is below another one put out its rows as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tests.fuzz import compare, query
from tests.fuzz.asof import as_of
from tests.fuzz.emit import emit
from tests.fuzz.join import join
from tests.fuzz.keyed import dedup, over
from tests.fuzz.outer import outer_join
from tests.fuzz.query import Query, Relation, Script
from tests.fuzz.row import Chance, Stream, stream, years
from tests.fuzz.table_join import draw_table, table_join
from tests.fuzz.unnest import explode
from tests.fuzz.window import calendar, session

Operator = Callable[[Chance, Sequence[Relation]], Query]

BELOW: tuple[Operator, ...] = (query._stateless, query._union, query._time_window, over, dedup)
ABOVE: tuple[Operator, ...] = (
    query._stateless,
    query._union,
    query._time_window,
    query._time_window,
    query._tuple_window,
    session,
    over,
    dedup,
    explode,
    join,
    outer_join,
)


@dataclass(frozen=True)
class Construct:
    """A construct, what may stand below and above it, and the streams it is asked of."""

    family: int
    operator: Operator
    below: Sequence[Operator] = BELOW
    above: Sequence[Operator] = ABOVE
    streams: Callable[[Chance, str], Stream] = stream


def grouping_sets(chance: Chance, relations: Sequence[Relation]) -> Query:
    """A window of time with several groupings, where its keys allow it."""
    return query._time_window(chance, relations, sets=1.0)


WITHOUT_JOINS = tuple(each for each in ABOVE if each not in (join, outer_join))
CONSTRUCTS = {
    "outer": Construct(40, outer_join, above=WITHOUT_JOINS),
    "asof": Construct(41, as_of, below=BELOW[:3], above=WITHOUT_JOINS),
    "table": Construct(42, table_join, below=(*BELOW, outer_join, as_of, session)),
    "session": Construct(43, session, below=(*BELOW, outer_join)),
    "calendar": Construct(44, calendar, streams=years),
    "over": Construct(45, over, below=(*BELOW, outer_join, session)),
    "dedup": Construct(47, dedup, below=(*BELOW, outer_join, session)),
    "emit": Construct(48, emit, above=(query._stateless,)),
    "explode": Construct(49, explode, below=(query._time_window, session, query._tuple_window)),
    "sets": Construct(50, grouping_sets),
}


def draw_construct(construct: Construct, chance: Chance, streams: Sequence[Stream]) -> Script:
    script, operator, above = Script(), construct.operator, construct.above
    relations = [Relation(s.name, dict(s.kinds)) for s in streams]
    if operator is table_join:
        script.given = [draw_table(chance, name) for name in ("a", "b")]
        operator = partial(table_join, tables=script.given)
        above = (*above, operator)
    if chance.random() < 0.5:
        relations.append(script.add(query._one(chance, construct.below)(chance, relations)))
    script.output = operator(chance, relations)
    if chance.random() < 0.6:
        found = script.add(script.output)
        script.output = query._one(chance, above)(chance, [found])
        if chance.random() < 0.5:
            script.second = query._stateless(chance, [found])
    return script


def check_seed(seed: int, name: str) -> bool:
    """Compare a script with a construct; whether rows came out."""
    construct = CONSTRUCTS[name]
    draw = partial(draw_construct, construct)
    return compare.check(seed, draw, construct.family, construct.streams)
