"""Parses the small pieces of the syntax, durations and numbers, and words the parser's errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError
from sqlglot.generator import Generator
from sqlglot.parsers.spark import SparkParser

from tidegate.calendar.duration import Months, duration_us, unit_us
from tidegate.errors import QueryError
from tidegate.sql.syntax import StreamDuration


class PieceParser(SparkParser):
    """Spark's parser with the pieces that several clauses share.

    `places` maps the id of a complete node to the tokens that were read by then.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.places: dict[int, tuple[exp.Expr, tuple[list[Token], int]]] = {}

    def validate_expression(self, expression: Any, args: list[Any] | None = None) -> Any:
        self.places[id(expression)] = (expression, (self._tokens, self._index))
        return super().validate_expression(expression, args)

    def _parse_duration(self) -> StreamDuration:
        self._match(TokenType.INTERVAL)
        token = self._curr
        if text := self._parse_string():
            if (own := self._parse_unit_of(text)) is not None:
                return self.expression(StreamDuration(this=exp.Literal.number(text.name), unit=own))
            self._checked(lambda: duration_us(text.name), "a duration such as '15 minutes'", token)
            return self.expression(StreamDuration(this=text))
        amount = self._parse_count("expected a duration such as 15 MINUTES")
        unit = self._curr
        if not unit or unit.token_type in (TokenType.R_BRACKET, TokenType.NUMBER):
            self.raise_error("expected a unit of time such as MINUTES")
        what = "a unit of time such as MINUTES"
        self._checked(lambda: unit_us(unit.text, "duration"), what, unit)
        self._advance()
        return self.expression(StreamDuration(this=amount, unit=exp.var(unit.text.upper())))

    def _parse_length(self) -> StreamDuration:
        """A duration, or a number of months."""
        self._match(TokenType.INTERVAL)
        amount, unit = self._curr, self._next
        if amount and amount.token_type is TokenType.STRING and Months.read(amount.text):
            return self.expression(StreamDuration(this=self._parse_string()))
        if amount and unit and Months.read(f"{amount.text} {unit.text}"):
            self._advance(2)
            number = exp.Literal.number(amount.text)
            return self.expression(StreamDuration(this=number, unit=exp.var(unit.text.upper())))
        return self._parse_duration()

    def _parse_unit_of(self, amount: exp.Expr) -> exp.Expr | None:
        """The unit after a quoted number, as in INTERVAL '5' MINUTES."""
        unit: Any = self._curr
        if unit is None or not amount.name.replace(".", "", 1).isdigit():
            return None
        try:
            unit_us(unit.text, "duration")
        except QueryError:
            return None
        self._advance()
        return exp.var(unit.text.upper())

    def _parse_count(self, expected: str = "expected a number") -> exp.Expr:
        negative = self._match(TokenType.DASH)
        number = self._parse_number()
        if not number:
            self.raise_error(expected)
        return exp.Neg(this=number) if negative else number  # type: ignore[return-value]

    def raise_error(self, message: str, token: Any = None) -> None:
        if token or self._curr:
            super().raise_error(message, token or self._curr)
        line, col = (self._prev.line, self._prev.col + 1) if self._prev else (1, 1)
        raise ParseError.new(message, description=message, line=line, col=col, highlight="")

    def _expect(self, word: str, message: str) -> None:
        if not self._match_text_seq(word):
            self.raise_error(message)

    def _string(self, message: str) -> exp.Expr | None:
        text = self._parse_string()
        if not text:
            self.raise_error(message)
        return text

    def _checked(self, check: Callable[[], int], expected: str, token: Any) -> None:
        try:
            check()
        except QueryError:
            self.raise_error(f"expected {expected}", token)


def duration_sql(to: Generator, node: exp.Expr) -> str:
    return " ".join(filter(None, (to.sql(node, "this"), to.sql(node, "unit"))))
