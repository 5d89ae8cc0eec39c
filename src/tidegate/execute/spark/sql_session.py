"""Makes the session in which Spark SQL evaluates prefixes, and asks it for types.

It has the functions, views and tables of the user's session as they are when a query is planned or
starts, and settings of its own: what a user sets for SQL elsewhere does not change what a query
means. Python functions of Tidegate (`tidegate.function`) are functions of it as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema

from tidegate.errors import QueryError, likely
from tidegate.execute.spark.failure import first_line, without_stacks
from tidegate.execute.spark.setting import sql_settings
from tidegate.expression.tree import Call, Column, Literal
from tidegate.expression.user_function import USER, UserFunction
from tidegate.operate.kernels.user import called
from tidegate.query.types.determinism import unstable
from tidegate.query.user_function import all_registered


def sql_session(session: SparkSession) -> SparkSession:
    """A session beside the user's that has what is registered there, and none of its settings."""
    plain = dict(session.newSession().conf.getAll)
    own = SparkSession(session.sparkContext, session._jsparkSession.cloneSession())
    for name, value in dict(own.conf.getAll).items():
        if name not in plain:
            own.conf.unset(name)
        elif plain[name] != value:
            own.conf.set(name, plain[name])
    for name, value in sql_settings().items():
        own.conf.set(name, value)
    return own


def register_functions(session: SparkSession) -> None:
    """Let Spark SQL call the Python functions that have been declared so far."""
    for function in all_registered().values():
        returned = arrow_udf(_for_spark(function), from_arrow_type(function.returns))
        session.udf.register(function.name, returned)


def _for_spark(function: UserFunction) -> Callable[..., pa.Array]:
    slots = inspect.signature(function.call).parameters
    columns = (Column(name, pa.null()) for name in slots)
    call = Call(USER, (Literal(function, pa.null()), *columns), function.returns)

    def run(*arrays: pa.Array) -> pa.Array:
        args = list(arrays)
        if function.takes is not None:
            args = [array.cast(t) for array, t in zip(arrays, function.takes, strict=False)]
        return called(call, function, args, len(arrays[0]))

    return run


def types_by_spark(
    session: SparkSession,
) -> Callable[[Sequence[str], pa.Schema], list[pa.DataType]]:
    """Ask Spark for the types of expressions that only it knows, and whether they are stable."""
    own = sql_session(session)
    register_functions(own)

    def types(expressions: Sequence[str], schema: pa.Schema) -> list[pa.DataType]:
        empty = own.createDataFrame([], from_arrow_schema(schema))
        try:
            with without_stacks():
                typed = empty.selectExpr(*[f"{e} AS c{i}" for i, e in enumerate(expressions)])
        except PySparkException as error:
            raise _unknown(own, error) from None
        except Py4JJavaError as error:
            if "StackOverflowError" not in str(error.java_exception):
                raise
            raise _too_complex() from None
        require_stable(typed)
        return [field.type for field in to_arrow_schema(typed.schema, timezone="UTC")]

    return types


def _too_complex() -> QueryError:
    """Spark's parser recurses, and ends at sums of some hundred terms."""
    return QueryError(
        "query",
        "Spark must be able to parse all expressions of a stream where one needs it",
        "an expression that is too long or too deep for it",
        "Write it shorter, or do without the functions that need Spark.",
    )


def _unknown(session: SparkSession, error: PySparkException) -> QueryError:
    if error.getCondition() == "FAILED_TO_PARSE_TOO_COMPLEX":
        return _too_complex()
    if error.getCondition() != "UNRESOLVED_ROUTINE":
        return QueryError("query", "every expression must be one Spark knows", first_line(error))
    name = str((error.getMessageParameters() or {}).get("routineName")).strip("`")
    known = [row.function for row in session.sql("SHOW FUNCTIONS").collect()]
    remedy = likely(name, known, alike=0.75) or "Spark's documentation lists its functions."
    return QueryError("query", "no function of Spark has this name", name, remedy)


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
