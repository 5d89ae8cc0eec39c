"""Tidegate: continuous queries over streams, on Apache Spark or in one process.

The names here are the public interface; everything else may change. PySpark is imported only when
a query runs on Spark.
"""

from __future__ import annotations

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
from tidegate.operate.user import Aggregator
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
from tidegate.runtime.query import RunningQuery
from tidegate.runtime.session import Session
from tidegate.source.memory import MemorySource
from tidegate.version import __version__

__all__ = [
    "Aggregator",
    "CheckpointError",
    "GateError",
    "MemorySource",
    "OptionError",
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
