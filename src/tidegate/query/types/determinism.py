"""Refuses functions whose value does not depend on the tuple alone, such as RAND and NOW.

A replayed batch must give the same rows. Functions are looked up by name here; Spark is asked about
functions that have no name here (`execute/spark/session/sql_session.py`).
"""

from __future__ import annotations

from sqlglot import exp

from tidegate.errors import QueryError

_CHANCE = "RAND RANDN RANDOM UUID UNIFORM RANDSTR SHUFFLE"
_CLOCK = "NOW CURDATE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP LOCALTIMESTAMP"
_SESSION = (
    "CURRENT_USER USER SESSION_USER CURRENT_CATALOG CURRENT_DATABASE CURRENT_SCHEMA"
    " CURRENT_TIMEZONE"
)
_PLACE = (
    "INPUT_FILE_NAME INPUT_FILE_BLOCK_START INPUT_FILE_BLOCK_LENGTH"
    " MONOTONICALLY_INCREASING_ID SPARK_PARTITION_ID"
)
_FOREIGN = "REFLECT JAVA_METHOD TRY_REFLECT"
_NAMES = frozenset(" ".join((_CHANCE, _CLOCK, _SESSION, _PLACE, _FOREIGN)).split())

_ENCRYPT = ("AES_ENCRYPT", "ENCRYPT")
_VECTOR = 5
"""With this many arguments, AES_ENCRYPT is given the vector that it otherwise draws at random."""


def is_unstable(node: exp.Expr) -> bool:
    """Whether a call may return another value for the same arguments in another run or place."""
    names = _names(node)
    if any(name in _NAMES for name in names):
        return True
    if "UNIX_TIMESTAMP" in names:
        return not _arguments(node)
    if any(name in _ENCRYPT for name in names):
        arguments = _arguments(node)
        plain = len(arguments) > 2 and arguments[2].name.upper() == "ECB"
        return len(arguments) < _VECTOR and not plain
    return False


def unstable(where: str, got: str) -> QueryError:
    """The error for such a call."""
    return QueryError(
        where,
        "an expression must give the same value whenever a batch is replayed",
        got,
        "Use the event time, or a column of the stream.",
    )


def _names(node: exp.Expr) -> list[str]:
    if isinstance(node, exp.Anonymous):
        return [node.name.upper()]
    return [name.upper() for name in node.sql_names()] if isinstance(node, exp.Func) else []


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for value in node.args.values():
        parts = value if isinstance(value, list) else [value]
        found += (part for part in parts if isinstance(part, exp.Expr))
    return found
