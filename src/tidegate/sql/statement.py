"""Splits typed text into statements, and lists words for completion."""

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
    """The functions that run without Spark, in upper case."""
    return sorted({*sql_names(), *(name.upper() for name in FUNCTIONS if name.isidentifier())})


def divided(text: str) -> tuple[list[str], str]:
    """The statements that end with a semicolon, without it, and the unfinished rest.

    Semicolons inside quotes and comments do not count, nor one after a quote that is still open.
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
