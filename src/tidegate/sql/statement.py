"""Divides text into statements as a person types them, and lists the words that may be typed."""

from __future__ import annotations

from sqlglot import TokenType
from sqlglot.errors import TokenError

from tidegate.operate.aggregate.registry import sql_names
from tidegate.query.types.function import FUNCTIONS
from tidegate.sql.dialect import Tidegate

KEYWORDS = tuple(
    """ALL AND ANTI AS ASC ASOF BETWEEN BY CASE CAST CONFIDENCE CREATE CROSS CUBE DENSE_RANK DESC
    DESCRIBE DISORDER DISTINCT ELSE EMIT END ERROR EVERY EXCEPT EXPLAIN EXPLODE FALSE FILTER
    FIRST FROM FULL GAP GROUP GROUPING HAVING IDLE IN INNER INTERVAL IS JOIN KEEP LAG LAST
    LATERAL LEAD LEFT LIKE LIMIT MATCH_CONDITION MAX MONTH NOT NULL OFFSET ON OPTIONS OR ORDER
    OUTER OVER PARTITION PERCENT PRECEDING QUALIFY RANGE RANK REFRESH RIGHT RLIKE ROLLUP ROWS
    ROW_NUMBER SELECT SEMI SESSION SETS SHED SLIDE STREAM TABLE THEN TIME TIMESTAMP TRUE
    UNBOUNDED UNION UNNEST USING VALID VIEW WHEN WHERE WINDOW WITH WITHIN ZONE""".split()
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
