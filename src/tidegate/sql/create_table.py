"""CREATE TABLE: its files, and which version of its rows counts when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import TokenType, exp
from sqlglot.generator import Generator

from tidegate.sql.create import CreateParser, create_sql
from tidegate.sql.syntax import CreateTable


class CreateTableParser(CreateParser):
    """Adds CREATE TABLE to the parser of CREATE STREAM."""

    def _parse_create(self) -> Any:
        if not self._match(TokenType.TABLE):
            return super()._parse_create()
        name = self._parse_id_var(any_token=False)
        if not name:
            self.raise_error("expected the name of the table")
        columns = self._parse_declared() if self._match(TokenType.L_PAREN) else None
        self._expect("FROM", "expected FROM 'uri'")
        uris = [self._parse_source()]
        while self._match(TokenType.COMMA):
            uris.append(self._parse_source())
        table = CreateTable(this=name, columns=columns, uris=uris)
        clauses: dict[str, Callable[[], exp.Expr | None]] = {
            "VALID": self._parse_valid_from,
            "REFRESH": self._parse_refresh_every,
            "OPTIONS": self._parse_reading_options,
        }
        while word := next((w for w in clauses if self._match_text_seq(w)), None):
            if table.args.get(word.lower()):
                self.raise_error(f"expected {word} only once", self._prev)
            table.set(word.lower(), clauses[word]())
        if self._curr:
            self.raise_error(
                "expected VALID FROM, REFRESH EVERY, OPTIONS or ; at the end of the statement"
            )
        return self.expression(table)

    def _parse_valid_from(self) -> exp.Expr | None:
        self._expect("FROM", "expected FROM after VALID")
        return self._parse_time_column()

    def _parse_refresh_every(self) -> exp.Expr:
        self._expect("EVERY", "expected EVERY after REFRESH")
        return self._parse_duration()


def create_table_sql(to: Generator, node: exp.Expr) -> str:
    text = create_sql(to, node).replace("CREATE STREAM", "CREATE TABLE", 1)
    for words, clause in (("VALID FROM", "valid"), ("REFRESH EVERY", "refresh")):
        if value := to.sql(node, clause):
            text += f" {words} {value}"
    return text
