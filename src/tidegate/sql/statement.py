"""Divides text into statements as a person types them, and lists the words that may be typed."""

from __future__ import annotations

from sqlglot import TokenType
from sqlglot.errors import TokenError

from tidegate.operate.aggregate.registry import sql_names
from tidegate.query.types.function import FUNCTIONS
from tidegate.sql.dialect import Tidegate

KEYWORDS = tuple(
    """ALL AND AS ASC BETWEEN BY CASE CAST CONFIDENCE CREATE DENSE_RANK DESC DESCRIBE DISORDER
    DISTINCT ELSE END ERROR EXCEPT EXPLAIN FALSE FILTER FROM GROUP HAVING IDLE IN INNER INTERVAL
    IS JOIN KEEP LAG LEAD LIKE LIMIT NOT NULL ON OPTIONS OR ORDER OVER PARTITION PERCENT
    PRECEDING QUALIFY RANGE RANK RLIKE ROWS ROW_NUMBER SELECT SHED SLIDE STREAM THEN TIME
    TIMESTAMP TRUE UNBOUNDED UNION USING WHEN WHERE WINDOW WITH""".split()
)


def function_names() -> list[str]:
    """The functions that queries can call without Spark, in capitals."""
    return sorted({*sql_names(), *(name.upper() for name in FUNCTIONS if name.isidentifier())})


def divided(text: str) -> tuple[list[str], str]:
    """The statements that a semicolon ends, without it, and what is begun after the last one.

    Semicolons in quotes and comments end nothing; nor does one behind a quote that is still open.
    """
    try:
        tokens = Tidegate().tokenize(text)
    except TokenError:
        return [], text
    statements, start, begun = [], 0, False
    for token in tokens:
        if token.token_type is not TokenType.SEMICOLON:
            begun = True
            continue
        if begun:
            statements.append(text[start : token.start].strip())
        start, begun = token.end + 1, False
    return statements, text[start:] if begun else ""
