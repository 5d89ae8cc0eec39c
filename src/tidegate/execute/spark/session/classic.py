"""A session with a JVM of this process: all that Spark has can be asked and told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidegate.execute.runner import JobRunner
from tidegate.execute.spark.session.access import SparkAccess
from tidegate.execute.spark.session.setting import sql_settings
from tidegate.execute.spark.session.submission import unmet
from tidegate.execute.spark.thread import take_charge
from tidegate.query.types.determinism import unstable


class ClassicAccess(SparkAccess):
    """Spark through Py4J."""

    calls_back = True

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    @property
    def master(self) -> str:
        return str(self._session.sparkContext.master)

    @property
    def parallelism(self) -> int:
        return int(self._session.sparkContext.defaultParallelism)

    def own_session(self) -> SparkSession:
        plain = dict(self._session.newSession().conf.getAll)
        cloned = self._session._jsparkSession.cloneSession()
        own = SparkSession(self._session.sparkContext, cloned)
        reset(own, plain)
        return own

    def check_stable(self, typed: DataFrame, expressions: Sequence[str], rows: DataFrame) -> None:
        require_stable(typed)

    def unmet(self, conf: Mapping[str, str]) -> dict[str, str]:
        return unmet(self._session, conf)

    def take_charge(self) -> None:
        take_charge(self._session.sparkContext)

    def runner(self, exchange: str, execution: str, title: str) -> JobRunner:
        from tidegate.execute.spark.runner import SparkRunner

        return SparkRunner(self._session, exchange, execution, title)


def reset(own: SparkSession, plain: Mapping[str, str]) -> None:
    """Give a session the settings of a plain one, and those that queries run with."""
    for name, value in dict(own.conf.getAll).items():
        if name not in plain:
            own.conf.unset(name)
        elif plain[name] != value:
            own.conf.set(name, plain[name])
    for name, value in sql_settings().items():
        own.conf.set(name, value)


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
