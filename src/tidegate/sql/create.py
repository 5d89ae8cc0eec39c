"""CREATE STREAM: parses and prints its columns, sources and clauses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from sqlglot import TokenType, exp
from sqlglot.generator import Generator

from tidegate.sql.clause import ClauseParser
from tidegate.sql.syntax import OF_SPARK, CreateStream, QueryWith


class CreateParser(ClauseParser):
    """Adds CREATE STREAM to the parser of clauses."""

    def _parse_source(self) -> exp.Expr:
        """A source: a quoted address, or TABLE and the name of a table in Spark."""
        if not self._match(TokenType.TABLE):
            return cast("exp.Expr", self._string("expected the address of a source in quotes"))
        name = self._parse_table_parts()
        if name is None:
            self.raise_error("expected the name of a table after TABLE")
        assert name is not None
        return exp.Literal.string(f"{OF_SPARK}{name.sql(dialect='spark')}")

    def _parse_create(self) -> Any:
        self._expect("STREAM", "expected STREAM or TABLE after CREATE")
        name = self._parse_id_var(any_token=False)
        if not name:
            self.raise_error("expected the name of the stream")
        if self._match_text_seq("AS"):
            query = self._parse_inner("expected SELECT after AS")
            return self.expression(CreateStream(this=name, query=query))
        columns = self._parse_declared() if self._match(TokenType.L_PAREN) else None
        expected = "expected FROM 'uri' or AS SELECT" if columns is None else "expected FROM 'uri'"
        self._expect("FROM", expected)
        uris = [self._parse_source()]
        while self._match(TokenType.COMMA):
            uris.append(self._parse_source())
        create = CreateStream(this=name, columns=columns, uris=uris, **self._parse_then(uris))
        clauses: dict[str, Callable[[], exp.Expr | None]] = {
            "TIME": self._parse_time_column,
            "DISORDER": self._parse_duration,
            "IDLE": self._parse_duration,
            "OPTIONS": self._parse_reading_options,
        }
        while word := next((w for w in clauses if self._match_text_seq(w)), None):
            if create.args.get(word.lower()):
                self.raise_error(f"expected {word} only once", self._prev)
            create.set(word.lower(), clauses[word]())
        if self._curr:
            self.raise_error(
                "expected TIME, DISORDER, IDLE, OPTIONS or ; at the end of the statement"
            )
        return self.expression(create)

    def _parse_then(self, uris: list[exp.Expr]) -> dict[str, exp.Expr | None]:
        """The topic that follows a history, and the time at which it takes over."""
        if not self._match(TokenType.THEN):
            return {}
        if len(uris) > 1 or uris[0].name.startswith(OF_SPARK):
            self.raise_error("expected one address, of files or a table, before THEN", self._prev)
        parts = {"then": self._string("expected the address of a topic in quotes after THEN")}
        if self._match_text_seq("UNTIL"):
            parts["until"] = self._string("expected a time in quotes after UNTIL")
        return parts

    def _parse_declared(self, close: bool = True) -> exp.Expr:
        """Columns with their types, up to the closing parenthesis or the end."""
        columns = []
        while True:
            name = self._parse_id_var()
            if not name:
                self.raise_error("expected the name of a column")
            first = self._curr
            kind = self._parse_types(schema=True)
            if not isinstance(kind, exp.DataType):
                self.raise_error("expected the type of the column, as STRING or BIGINT", first)
            columns.append(exp.ColumnDef(this=name, kind=kind))
            if not self._match(TokenType.COMMA):
                break
        if close and not self._match(TokenType.R_PAREN):
            self.raise_error("expected , or ) after the type of a column")
        if not close and self._curr:
            self.raise_error("expected , or the end after the type of a column")
        return self.expression(exp.Schema(expressions=columns))

    def _parse_reading_options(self) -> exp.Expr:
        """`(name value, name = value, ...)`; values are strings, numbers, TRUE or FALSE."""
        if not self._match(TokenType.L_PAREN):
            self.raise_error("expected ( after OPTIONS")
        options = []
        while True:
            name = self._parse_string() or self._parse_id_var(any_token=True)
            if name is None:
                self.raise_error("expected the name of an option")
                break
            self._match(TokenType.EQ)
            value = self._parse_string() or self._parse_boolean() or self._parse_number()
            if not value:
                self.raise_error(f"expected a value of option {name.name}, a string in quotes")
            options.append(exp.EQ(this=exp.to_identifier(name.name), expression=value))
            if not self._match(TokenType.COMMA):
                break
        if not self._match(TokenType.R_PAREN):
            self.raise_error("expected , or ) after the value of an option")
        return self.expression(exp.Tuple(expressions=options))

    def _parse_time_column(self) -> exp.Expr | None:
        column = self._parse_id_var()
        if not column:
            self.raise_error("expected the name of the time column")
        return column

    def _is_query(self, token: Any) -> bool:
        starts = (TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN)
        return token is not None and token.token_type in starts

    def _parse_inner(self, expected: str) -> exp.Expr | None:
        """The query inside another statement, with its options."""
        first = self._curr
        query = self._parse_clauses(self._parse_ddl_select())
        if not isinstance(query, exp.Query | QueryWith):
            self.raise_error(expected, first)
        return query


def _source_sql(to: Generator, node: exp.Expr) -> str:
    if node.name.startswith(OF_SPARK):
        return f"TABLE {node.name.removeprefix(OF_SPARK)}"
    return to.sql(node)


def create_sql(to: Generator, node: exp.Expr) -> str:
    name = to.sql(node, "this")
    if query := to.sql(node, "query"):
        return f"CREATE STREAM {name} AS {query}"
    declared = node.args.get("columns")
    columns = ", ".join(to.sql(c) for c in declared.expressions) if declared else ""
    text = f"CREATE STREAM {name}{f' ({columns})' if columns else ''}"
    text += f" FROM {', '.join(_source_sql(to, u) for u in node.args['uris'])}"
    for clause in ("then", "until", "time", "disorder", "idle"):
        if value := to.sql(node, clause):
            text += f" {clause.upper()} {value}"
    if options := node.args.get("options"):
        pairs = [f"{to.sql(o, 'this')} {to.sql(o, 'expression')}" for o in options.expressions]
        text += f" OPTIONS ({', '.join(pairs)})"
    return text
