"""The public names are what `__all__` says, and importing them starts nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tidegate
from tidegate.operate.aggregate import registry
from tidegate.query.aggregate import sum_
from tidegate.session.session import Session


def test_every_public_name_is_there() -> None:
    missing = [n for n in tidegate.__all__ if not hasattr(tidegate, n)]
    assert missing == []
    assert tidegate.__all__ == sorted(tidegate.__all__)


def test_nothing_else_is_public() -> None:
    assert dir(tidegate) == sorted(tidegate.__all__)
    with pytest.raises(AttributeError, match="module 'tidegate' has no attribute 'nothing'"):
        _ = tidegate.nothing


def test_names_are_what_they_are_where_they_live() -> None:
    """Names are loaded when they are first used."""
    assert tidegate.sum is sum_
    assert tidegate.Session is Session
    assert tidegate.Aggregator.__module__ == "tidegate.operate.aggregate.user"


def test_the_names_are_these() -> None:
    """A change here is a change of the interface: it belongs in the CHANGELOG."""
    assert set(tidegate.__all__) == {
        *("Session", "Stream", "RunningQuery", "MemorySource", "Aggregator", "Process"),
        *("Gate", "sink", "policy"),
        *("col", "lit", "call", "left", "right", "when", "expr", "function", "lag", "row_number"),
        *("lead", "nth_value", "rank", "dense_rank"),
        *("aggregate", "count", "count_distinct", "first", "last", "max", "mean", "median"),
        *("min", "quantile", "stddev", "sum", "var", "min_by", "max_by", "corr", "covar_samp"),
        *("covar_pop", "bool_and", "bool_or", "count_if", "approx_count_distinct"),
        *("approx_percentile", "percentile_cont", "percentile_disc", "mode"),
        *("array_agg", "string_agg", "collect_set", "cube", "grouping_sets", "rollup"),
        *("TidegateError", "UserError", "QueryError", "OptionError", "SourceError"),
        *(
            "CheckpointError",
            "UnavailableError",
            "RunError",
            "StateError",
            "SinkError",
            "LostOutputError",
        ),
        *("LostOutputError", "TaskError", "GateError", "__version__"),
    }


def test_every_aggregate_function_is_public() -> None:
    named = {f.python for f in registry.TABLE if f.python is not None}
    assert named <= set(tidegate.__all__)
    for name in named:
        assert getattr(tidegate, name).__doc__
        assert getattr(tidegate, name).__name__ == name


def test_the_names_of_the_sinks() -> None:
    for name in tidegate.sink.__all__:
        assert hasattr(tidegate.sink, name)
    assert {"files", "memory", "console", "call"} <= set(tidegate.sink.__all__)


def test_the_names_of_the_policies() -> None:
    for name in tidegate.policy.__all__:
        assert hasattr(tidegate.policy, name)
    assert {"fixed", "threshold", "Policy", "Decision"} <= set(tidegate.policy.__all__)


@pytest.mark.whole
def test_a_query_without_spark_does_not_import_pyspark() -> None:
    program = """
import sys, datetime, tidegate as tg
assert "pyspark" not in sys.modules, "importing tidegate imports pyspark"
import tidegate.cli.main
assert "pyspark" not in sys.modules, "the command line imports pyspark"
source = tg.MemorySource([{"ts": datetime.datetime(2024, 1, 1), "v": 1}], time="ts")
source.end()
stream = tg.Session(master="none").stream(source, time="ts")
assert stream.window("1 hour").agg(n=tg.count()).start(sink=tg.sink.memory()).wait().finished
assert "pyspark" not in sys.modules, "a run without Spark imports pyspark"
assert "duckdb" not in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
