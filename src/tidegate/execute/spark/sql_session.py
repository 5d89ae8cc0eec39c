"""The session in which Spark SQL evaluates prefixes, between a user's session and queries here.

It has the functions, views and tables of the user's session as they are when a query is planned or
starts, and settings of its own: what a user sets for SQL elsewhere does not change what a query
means. Python functions of Tidegate (`tidegate.function`) are functions of it as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type

from tidegate.execute.spark.setting import sql_settings
from tidegate.expression.tree import Call, Column, Literal
from tidegate.expression.user_function import USER, UserFunction
from tidegate.operate.kernels.user import called
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
