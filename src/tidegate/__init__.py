"""Tidegate: continuous queries over streams, on Apache Spark or in one process.

The names here are the public interface; everything else may change. They are imported when first
used, so that a task on a worker loads only what it needs; PySpark is loaded only when a query runs
on Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tidegate.version import __version__

if TYPE_CHECKING:
    from tidegate import sink
    from tidegate.errors import (
        CheckpointError,
        GateError,
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
        count,
        count_distinct,
        first,
        last,
        mean,
        median,
        quantile,
        stddev,
        var,
    )
    from tidegate.query.aggregate import max_ as max
    from tidegate.query.aggregate import min_ as min
    from tidegate.query.aggregate import sum_ as sum
    from tidegate.query.expression import call, col, left, lit, right
    from tidegate.query.stream import Stream
    from tidegate.session.query import RunningQuery
    from tidegate.session.session import Session
    from tidegate.source.memory import MemorySource

__all__ = [
    "Aggregator",
    "CheckpointError",
    "Gate",
    "GateError",
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
    "call",
    "col",
    "count",
    "count_distinct",
    "first",
    "last",
    "left",
    "lit",
    "max",
    "mean",
    "median",
    "min",
    "quantile",
    "right",
    "sink",
    "stddev",
    "sum",
    "var",
]

_HOMES = {
    "CheckpointError": ("tidegate.errors", "CheckpointError"),
    "GateError": ("tidegate.errors", "GateError"),
    "OptionError": ("tidegate.errors", "OptionError"),
    "QueryError": ("tidegate.errors", "QueryError"),
    "RunError": ("tidegate.errors", "RunError"),
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
    "count": ("tidegate.query.aggregate", "count"),
    "count_distinct": ("tidegate.query.aggregate", "count_distinct"),
    "first": ("tidegate.query.aggregate", "first"),
    "last": ("tidegate.query.aggregate", "last"),
    "max": ("tidegate.query.aggregate", "max_"),
    "mean": ("tidegate.query.aggregate", "mean"),
    "median": ("tidegate.query.aggregate", "median"),
    "min": ("tidegate.query.aggregate", "min_"),
    "quantile": ("tidegate.query.aggregate", "quantile"),
    "stddev": ("tidegate.query.aggregate", "stddev"),
    "sum": ("tidegate.query.aggregate", "sum_"),
    "var": ("tidegate.query.aggregate", "var"),
    "call": ("tidegate.query.expression", "call"),
    "col": ("tidegate.query.expression", "col"),
    "left": ("tidegate.query.expression", "left"),
    "lit": ("tidegate.query.expression", "lit"),
    "right": ("tidegate.query.expression", "right"),
    "Stream": ("tidegate.query.stream", "Stream"),
    "RunningQuery": ("tidegate.session.query", "RunningQuery"),
    "Session": ("tidegate.session.session", "Session"),
    "MemorySource": ("tidegate.source.memory", "MemorySource"),
    "sink": ("tidegate.sink", None),
}


def __getattr__(name: str) -> Any:
    """Load a public name from the module it lives in."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tidegate' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    loaded = import_module(module)
    found = loaded if attribute is None else getattr(loaded, attribute)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
