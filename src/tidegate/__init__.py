"""Tidegate: continuous queries over streams, on Apache Spark or in one process.

The names here are the public interface; everything else may change. Each is imported when first
used, so that a task on a worker loads only what it needs. PySpark is loaded only when a query runs
on Spark.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tidegate.version import __version__

if TYPE_CHECKING:
    from tidegate import policy, sink
    from tidegate.errors import (
        CheckpointError,
        GateError,
        LostOutputError,
        OptionError,
        QueryError,
        RunError,
        SinkError,
        SourceError,
        StateError,
        TaskError,
        TidegateError,
        UnavailableError,
        UserError,
    )
    from tidegate.gate.gate import Gate
    from tidegate.operate.aggregate.user import Aggregator
    from tidegate.operate.process.definition import Process
    from tidegate.query.aggregate import (
        aggregate,
        approx_count_distinct,
        approx_percentile,
        array_agg,
        bool_and,
        bool_or,
        collect_set,
        corr,
        count,
        count_distinct,
        count_if,
        covar_pop,
        covar_samp,
        first,
        last,
        max_by,
        mean,
        median,
        min_by,
        mode,
        percentile_cont,
        percentile_disc,
        quantile,
        stddev,
        string_agg,
        var,
    )
    from tidegate.query.aggregate import max_ as max
    from tidegate.query.aggregate import min_ as min
    from tidegate.query.aggregate import sum_ as sum
    from tidegate.query.expression import call, col, left, lit, right, when
    from tidegate.query.grouping import cube, grouping_sets, rollup
    from tidegate.query.node.over import dense_rank, lag, lead, nth_value, rank, row_number
    from tidegate.query.stream import Stream
    from tidegate.query.user_function import function
    from tidegate.session.query import RunningQuery
    from tidegate.session.session import Session
    from tidegate.source.memory import MemorySource
    from tidegate.sql.text import expr

__all__ = [
    "Aggregator",
    "CheckpointError",
    "Gate",
    "GateError",
    "LostOutputError",
    "MemorySource",
    "OptionError",
    "Process",
    "QueryError",
    "RunError",
    "RunningQuery",
    "Session",
    "SinkError",
    "SourceError",
    "StateError",
    "Stream",
    "TaskError",
    "TidegateError",
    "UnavailableError",
    "UserError",
    "__version__",
    "aggregate",
    "approx_count_distinct",
    "approx_percentile",
    "array_agg",
    "bool_and",
    "bool_or",
    "call",
    "col",
    "collect_set",
    "corr",
    "count",
    "count_distinct",
    "count_if",
    "covar_pop",
    "covar_samp",
    "cube",
    "dense_rank",
    "expr",
    "first",
    "function",
    "grouping_sets",
    "lag",
    "last",
    "lead",
    "left",
    "lit",
    "max",
    "max_by",
    "mean",
    "median",
    "min",
    "min_by",
    "mode",
    "nth_value",
    "percentile_cont",
    "percentile_disc",
    "policy",
    "quantile",
    "rank",
    "right",
    "rollup",
    "row_number",
    "sink",
    "stddev",
    "string_agg",
    "sum",
    "var",
    "when",
]

_HOMES = {
    "CheckpointError": ("tidegate.errors", "CheckpointError"),
    "GateError": ("tidegate.errors", "GateError"),
    "OptionError": ("tidegate.errors", "OptionError"),
    "QueryError": ("tidegate.errors", "QueryError"),
    "RunError": ("tidegate.errors", "RunError"),
    "LostOutputError": ("tidegate.errors", "LostOutputError"),
    "SinkError": ("tidegate.errors", "SinkError"),
    "SourceError": ("tidegate.errors", "SourceError"),
    "StateError": ("tidegate.errors", "StateError"),
    "TaskError": ("tidegate.errors", "TaskError"),
    "TidegateError": ("tidegate.errors", "TidegateError"),
    "UnavailableError": ("tidegate.errors", "UnavailableError"),
    "UserError": ("tidegate.errors", "UserError"),
    "Gate": ("tidegate.gate.gate", "Gate"),
    "Process": ("tidegate.operate.process.definition", "Process"),
    "Aggregator": ("tidegate.operate.aggregate.user", "Aggregator"),
    "aggregate": ("tidegate.query.aggregate", "aggregate"),
    "call": ("tidegate.query.expression", "call"),
    "col": ("tidegate.query.expression", "col"),
    "left": ("tidegate.query.expression", "left"),
    "lit": ("tidegate.query.expression", "lit"),
    "right": ("tidegate.query.expression", "right"),
    "when": ("tidegate.query.expression", "when"),
    **{n: ("tidegate.query.grouping", n) for n in ("cube", "grouping_sets", "rollup")},
    "dense_rank": ("tidegate.query.node.over", "dense_rank"),
    "lag": ("tidegate.query.node.over", "lag"),
    "lead": ("tidegate.query.node.over", "lead"),
    "nth_value": ("tidegate.query.node.over", "nth_value"),
    "rank": ("tidegate.query.node.over", "rank"),
    "row_number": ("tidegate.query.node.over", "row_number"),
    "expr": ("tidegate.sql.text", "expr"),
    "Stream": ("tidegate.query.stream", "Stream"),
    "function": ("tidegate.query.user_function", "function"),
    "RunningQuery": ("tidegate.session.query", "RunningQuery"),
    "Session": ("tidegate.session.session", "Session"),
    "MemorySource": ("tidegate.source.memory", "MemorySource"),
    "policy": ("tidegate.policy", None),
    "sink": ("tidegate.sink", None),
}

_HINTS = {
    "avg": "Write tg.mean.",
    "std": "Write tg.stddev.",
    "variance": "Write tg.var.",
    "percentile": "Write tg.quantile.",
    "n_unique": "Write tg.count_distinct.",
    "countDistinct": "Write tg.count_distinct.",
    "functions": "The functions are here: tg.count, tg.sum, tg.mean, tg.call for those of SQL.",
    "F": "The functions are here: tg.count, tg.sum, tg.mean, tg.call for those of SQL.",
    "column": "Write tg.col.",
    **dict.fromkeys(
        ("stream", "read", "readStream", "read_csv", "read_parquet", "from_pandas", "DataFrame"),
        'Write tg.Session().stream("rides.parquet", time="ts"); a table in memory will do too.',
    ),
    "sql": 'Write tg.Session().sql("SELECT ...", rides=stream).',
    "window": 'Write stream.window("15 minutes", slide="5 minutes").',
}
"""What to write instead of names that users of other libraries look for."""


def __getattr__(name: str) -> Any:
    """Imports a public name from its module, or builds the function of an aggregate."""
    module, attribute = _HOMES.get(name, (None, None))
    if module is None:
        return _aggregate(name)
    loaded = import_module(module)
    found = loaded if attribute is None else getattr(loaded, attribute)
    globals()[name] = found
    return found


def _aggregate(name: str) -> Any:
    """The function for a registered aggregate."""
    # `from tidegate import clock` asks here first: a module must not load all of the functions.
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is None:
        from tidegate.query.aggregate import builder

        with suppress(KeyError):
            return builder(name)
    hint = f". {_HINTS[name]}" if name in _HINTS else ""
    raise AttributeError(f"module 'tidegate' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted(__all__)
