"""Finds typing mistakes that a parser would blame on a later word."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, TokenType

from tidegate.errors import QueryError, likely
from tidegate.nesting import MOST_NESTED, REMEDY, REQUIREMENT

STATEMENTS = "expected CREATE STREAM, INSERT INTO or SELECT"
MOST_DIGITS = 400
"""The most digits of a number literal; no type holds as many."""

_CURLY = "‘’‚“”„´"
_CLAUSES = {
    TokenType.SELECT,
    TokenType.FROM,
    TokenType.JOIN,
    TokenType.ON,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.ORDER_BY,
    TokenType.LIMIT,
}
_STREAMS = (TokenType.FROM, TokenType.JOIN)
_MEASURES = (TokenType.RANGE, TokenType.ROWS)
_AMOUNTS = (TokenType.NUMBER, TokenType.STRING)
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END)
_SIGNS = (TokenType.NOT, TokenType.DASH, TokenType.TILDE, TokenType.PLUS)
_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)


def refuse_slips(tokens: Sequence[Token]) -> None:
    """Raises for curly quotes, unknown first words of statements, and misplaced windows."""
    _refuse_depth(tokens)
    clauses: list[TokenType | None] = [None]  # of the statement, then of each open bracket
    bracketed = False
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None]):
        kind = token.token_type
        if kind is TokenType.NUMBER and len(token.text) > MOST_DIGITS:
            raise _at(
                token, f"a number may have {MOST_DIGITS} digits", "Write it with an exponent."
            )
        if kind not in _QUOTED and any(c in token.text for c in _CURLY):
            raise _at(token, "quotes must be straight", "Write 'text' and `name`.")
        if before is None or before.token_type is TokenType.SEMICOLON:
            clauses = [None]
            _check_first(token)
        if kind in _CLAUSES:
            clauses[-1] = kind
        elif kind is TokenType.L_PAREN:
            clauses.append(None)
        elif kind is TokenType.R_PAREN and len(clauses) > 1:
            clauses.pop()
        elif kind in (TokenType.L_BRACKET, TokenType.R_BRACKET):
            bracketed = kind is TokenType.L_BRACKET
        elif kind in _MEASURES and after is not None and after.token_type in _AMOUNTS:
            inside = next((c for c in reversed(clauses) if c), None)
            _check_window(token, inside in _STREAMS, bracketed, after)


def _refuse_depth(tokens: Sequence[Token]) -> None:
    """Raises for nesting so deep that the recursive parser would fail."""
    depth = signs = 0
    for token in tokens:
        kind = token.token_type
        signs = signs + 1 if kind in _SIGNS else 0
        if kind in _OPENING:
            depth += 1
        elif kind in _CLOSING:
            depth -= 1
        elif kind is TokenType.SEMICOLON:
            depth = 0
        if depth + signs > MOST_NESTED:
            raise _at(token, REQUIREMENT, REMEDY)


def _check_first(token: Token) -> None:
    if token.token_type is TokenType.HASH:
        raise _at(token, STATEMENTS, "Comments begin with --.")
    if token.token_type in (TokenType.VAR, TokenType.NUMBER):
        remedy = likely(token.text, ["CREATE", "INSERT", "SELECT", "WITH"])
        raise _at(token, STATEMENTS, remedy)


def _check_window(token: Token, in_from: bool, bracketed: bool, amount: Token) -> None:
    if in_from and not bracketed:
        remedy = f"Write [{token.text} {amount.text} ...]."
        raise _at(token, "a window must stand in square brackets", remedy)
    if bracketed and not in_from:
        remedy = "Move it into FROM, after the stream's name."
        raise _at(token, "a window must stand right after its stream", remedy)


def _at(token: Token, requirement: str, remedy: str) -> QueryError:
    return QueryError(place_of(token), requirement, token.text, remedy or None)


def place_of(token: Token) -> str:
    """Where a token begins, for messages."""
    return f"SQL line {token.line}, column {max(1, token.col - len(token.text) + 1)}"
