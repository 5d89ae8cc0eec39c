"""The aggregate functions there are: one row each, found by their names in SQL and in Python."""

from __future__ import annotations

from tidegate.errors import QueryError, near
from tidegate.operate.aggregate import process, user
from tidegate.operate.aggregate.definition import AggregateFunction
from tidegate.operate.aggregate.functions import (
    approximate,
    collection,
    comoment,
    count,
    edge,
    extreme,
    extreme_by,
    held_tuples,
    holistic,
    mode,
    moment,
    percentile,
    raw_arguments,
    spread,
    total,
)
from tidegate.operate.aggregate.sample import quantile_sample, sample_pool, sample_state
from tidegate.operate.aggregate.shed import candidates, concept_aggregate

TABLE = (
    count.COUNT,
    total.SUM,
    total.MEAN,
    extreme.MIN,
    extreme.MAX,
    moment.VAR,
    moment.STDDEV,
    holistic.MEDIAN,
    holistic.QUANTILE,
    holistic.DISTINCT,
    edge.FIRST,
    edge.LAST,
    extreme_by.MIN_BY,
    extreme_by.MAX_BY,
    comoment.CORR,
    comoment.COVAR_SAMP,
    comoment.COVAR_POP,
    extreme.BOOL_AND,
    extreme.BOOL_OR,
    count.COUNT_IF,
    approximate.APPROX_COUNT_DISTINCT,
    percentile.PERCENTILE_CONT,
    percentile.PERCENTILE_DISC,
    percentile.APPROX_PERCENTILE,
    mode.MODE,
    collection.ARRAY_AGG,
    collection.STRING_AGG,
    collection.COLLECT_SET,
    percentile.PERCENTILE_CONT_DESC,
    percentile.PERCENTILE_DISC_DESC,
    mode.MODE_DESC,
    collection.STRING_SET,
    collection.TRACED,
    extreme_by.LAST_BY,
    user.USER,
    process.PROCESS,
    raw_arguments.UNFOLDED,
    held_tuples.HELD,
    sample_state.SAMPLED,
    quantile_sample.RANKED,
    sample_pool.DRAWN,
    concept_aggregate.REPRESENTED,
    candidates.CANDIDATES,
    spread.SPREAD,
    total.COUNTED_MEAN,
)
"""A new function is a line here; messages list the names in this order."""

FUNCTIONS: dict[str, AggregateFunction] = {function.name: function for function in TABLE}
"""The rows by their names in plans."""


def find(name: str) -> AggregateFunction:
    """The function of this name in a plan; an unknown one is an error with the near names."""
    if name not in FUNCTIONS:
        raise QueryError("aggregate", "the kind must be known", name, near(name, FUNCTIONS))
    return FUNCTIONS[name]


def find_sql(name: str) -> AggregateFunction | None:
    """The function that SQL knows by this name, in whatever case."""
    return next((f for f in FUNCTIONS.values() if name.upper() in f.sql), None)


def find_python(name: str) -> AggregateFunction | None:
    """The function that `tidegate.name` stands for."""
    return next((f for f in FUNCTIONS.values() if f.python == name), None)


def sql_names() -> list[str]:
    """All names in SQL, those of one function beside each other."""
    return [name for function in FUNCTIONS.values() for name in function.sql]
