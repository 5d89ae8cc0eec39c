"""Refuses functions whose value is not decided by the tuple alone, as RAND and NOW.

Between expressions as written, whose names are looked up here, and Spark, which is asked about what
has no name here (`execute/spark/sql_session.py`). A batch that is replayed must give the same rows.
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
"""From so many arguments on, AES_ENCRYPT is given what it otherwise draws by chance."""


def is_unstable(node: exp.Expr) -> bool:
    """Whether a call may give another value for the same arguments, in another run or place."""
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
    """What to say of such a call."""
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
