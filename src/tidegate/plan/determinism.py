"""The rule that refuses functions whose value is not decided by the tuple alone."""

from __future__ import annotations

from sqlglot import exp

from tidegate.errors import QueryError

_CLASSES = tuple(
    cls
    for name in (
        "Rand Randn Uuid CurrentDate CurrentTime CurrentTimestamp CurrentUser Localtimestamp"
    ).split()
    if (cls := getattr(exp, name, None)) is not None
)
_NAMES = {
    "RAND",
    "RANDN",
    "RANDOM",
    "UUID",
    "NOW",
    "CURDATE",
    "CURRENT_DATE",
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "MONOTONICALLY_INCREASING_ID",
    "SPARK_PARTITION_ID",
    "INPUT_FILE_NAME",
    "SHUFFLE",
}


def require_deterministic(expression: exp.Expression, where: str) -> None:
    """Refuse random numbers and the wall clock, also inside what only Spark evaluates.

    Typing refuses them where it knows the functions around them; Spark would run the rest.
    """
    for node in expression.walk():
        named = isinstance(node, exp.Anonymous) and node.name.upper() in _NAMES
        if isinstance(node, _CLASSES) or named:
            raise QueryError(
                where,
                "an expression must give the same value whenever a batch is replayed",
                node.sql(dialect="spark", comments=False),
                "Use the event time, or a column of the stream.",
            )
