"""Makes the session in which Spark SQL evaluates prefixes, and asks it for types.

It has the functions, views and tables of the user's session as they are when a query is planned or
starts, and settings of its own: what a user sets for SQL elsewhere does not change what a query
means. Python functions of Tidegate (`tidegate.function`) are functions of it as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidegate.errors import QueryError, likely
from tidegate.execute.spark.failure import first_line, without_stacks
from tidegate.execute.spark.feature import (
    ARROW_FUNCTIONS,
    arrow_function,
    arrow_schema,
    has,
    since,
    spark_schema,
)
from tidegate.execute.spark.session.access import access_of
from tidegate.expression.tree import Call, Column, Literal
from tidegate.expression.user_function import USER, UserFunction
from tidegate.operate.kernels.expression.user import called
from tidegate.query.user_function import all_registered


def register_functions(session: SparkSession) -> None:
    """Let Spark SQL call the Python functions that have been declared so far, where it can."""
    if not has(session, ARROW_FUNCTIONS):
        return
    for function in all_registered().values():
        returned = arrow_function(_for_spark(function), function.returns)
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
    access = access_of(session)
    own = access.own_session()
    register_functions(own)

    def types(expressions: Sequence[str], schema: pa.Schema) -> list[pa.DataType]:
        empty = own.createDataFrame([], spark_schema(schema))
        try:
            with without_stacks():
                typed = empty.selectExpr(*[f"{e} AS c{i}" for i, e in enumerate(expressions)])
        except PySparkException as error:
            raise _unknown(own, error) from None
        except Py4JJavaError as error:
            if "StackOverflowError" not in str(error.java_exception):
                raise
            raise _too_complex() from None
        access.check_stable(typed, expressions, empty)
        return [field.type for field in arrow_schema(typed.schema)]

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
    if name.lower() in map(str.lower, all_registered()):
        return QueryError(
            f"function {name}",
            f"Spark SQL calls Python functions of Tidegate from Spark {since(ARROW_FUNCTIONS)} on",
            f"Spark {session.version}, in a stream that Spark SQL evaluates",
            "Use a newer Spark, or do without the functions that need Spark SQL beside it.",
        )
    known = [row.function for row in session.sql("SHOW FUNCTIONS").collect()]
    remedy = likely(name, known, alike=0.75) or "Spark's documentation lists its functions."
    return QueryError("query", "no function of Spark has this name", name, remedy)
