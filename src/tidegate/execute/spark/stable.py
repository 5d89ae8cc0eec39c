"""Asks Spark whether expressions give the same value in every run.

The names of functions are looked up when a query is planned (`query/types/determinism.py`). What a
name does not tell, Spark's analysed plan does: functions that users registered, and those of later
versions.
"""

from __future__ import annotations

from typing import Any

from tidegate.query.types.determinism import unstable


def require_stable(frame: Any) -> None:
    """Refuse a DataFrame that draws numbers or reads the clock; its plan is asked as a whole first.

    `frame` is a DataFrame of Spark, seen through Py4J: every question is a call to the JVM.
    """
    analyzed = frame._jdf.queryExecution().analyzed()
    trees = frame.sparkSession._jvm.org.apache.spark.sql.catalyst.trees
    clock = trees.TreePattern.CURRENT_LIKE()
    if analyzed.deterministic() and not analyzed.containsPattern(clock):
        return
    for expression in _all(analyzed.expressions()):
        if not expression.deterministic():
            raise unstable("query", _culprit(expression, lambda e: not e.deterministic()))
        if expression.containsPattern(clock):
            raise unstable("query", _culprit(expression, lambda e: e.containsPattern(clock)))


def _culprit(expression: Any, guilty: Any) -> str:
    """The innermost part of an expression that is guilty, by the name of its function."""
    while inner := next((e for e in _all(expression.children()) if guilty(e)), None):
        expression = inner
    return f"{expression.prettyName()}()"


def _all(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.size())]
