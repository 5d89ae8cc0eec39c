"""Tidegate's SQL as a sqlglot dialect of Spark's, between the text of a script and syntax trees."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, cast

from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.generator import Generator
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

from tidegate.errors import QueryError
from tidegate.nesting import nested
from tidegate.operate.aggregate.registry import TABLE
from tidegate.sql.call import whole
from tidegate.sql.elsewhere import refuse_elsewhere
from tidegate.sql.instead import LISTS
from tidegate.sql.option import OPTIONS_SQL, OptionParser
from tidegate.sql.remedy import NEEDS_AS, UNEXPECTED, WORDS, remedy
from tidegate.sql.slip import STATEMENTS, refuse_slips
from tidegate.sql.slot import refuse_leftovers
from tidegate.sql.syntax import (
    OF_SPARK,
    CreateStream,
    InsertInto,
    QueryWith,
    StreamWindow,
)

_UNEXPECTED = "invalid expression / Unexpected token"
_PLAIN = {
    _UNEXPECTED: UNEXPECTED,
    "expecting )": "expected )",
    "expecting (": "expected (",
    "expected table name": "expected the name of a stream",
    "required": "expected another operand or argument",
    "the number of provided arguments": "expected fewer arguments",
}


_OF_SEVERAL = tuple(name for f in TABLE if len(f.arguments) > 1 for name in f.sql)
"""Aggregates of several columns. sqlglot has a place for each of them, and where one is missing or
too many are there it says so without naming the function; here they are calls like others."""


def _call(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    """A call with its arguments in a plain list, however many there are."""
    return lambda arguments: exp.Anonymous(this=name, expressions=arguments)


class TidegateParser(OptionParser):
    """Spark's parser with streams, windows after table names, and trailing WITH clauses."""

    FUNCTIONS = {
        **{name: whole(name, build) for name, build in SparkParser.FUNCTIONS.items()},
        **{name: _call(name) for name in (*_OF_SEVERAL, *LISTS, "PERCENTILE")},
        "MEAN": exp.Avg.from_arg_list,
        "VAR": exp.Variance.from_arg_list,
        "STD": exp.Stddev.from_arg_list,
        "STDDEV_SAMP": exp.Stddev.from_arg_list,
    }

    FUNCTION_PARSERS = {
        name: parser
        for name, parser in SparkParser.FUNCTION_PARSERS.items()
        if name not in (*_OF_SEVERAL, *LISTS, "CEIL", "FLOOR", "PERCENTILE")
    }

    NO_PAREN_FUNCTION_PARSERS = {  # ANY(p) is an aggregate in Spark
        name: parser
        for name, parser in SparkParser.NO_PAREN_FUNCTION_PARSERS.items()
        if name != "ANY"
    }

    TERM = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}

    def _parse_bitwise(self) -> exp.Expr | None:
        """Operators below + and ||, where sqlglot has one level and Spark four: shifts, &, ^, |."""
        return self._parse_bits(TokenType.PIPE, TokenType.CARET, TokenType.AMP)

    def _parse_bits(self, token: TokenType, *tighter: TokenType) -> exp.Expr | None:
        def operand() -> exp.Expr | None:
            return self._parse_bits(*tighter) if tighter else self._parse_shift()

        this = operand()
        while self._match(token):
            this = self.expression(self.BITWISE[token](this=this, expression=operand()))
        return this

    def _parse_shift(self) -> exp.Expr | None:
        this = self._parse_term()
        while True:
            if self._match_pair(TokenType.LT, TokenType.LT):
                kind: type[exp.Binary] = exp.BitwiseLeftShift
            elif self._match_pair(TokenType.GT, TokenType.GT):
                kind = exp.BitwiseRightShift
            else:
                return this
            this = self.expression(kind(this=this, expression=self._parse_term()))

    def _parse_statement(self) -> exp.Expr | None:
        return self._parse_options(super()._parse_statement())

    def _parse_wrapped_select(self, table: bool = False) -> exp.Expr | None:
        query = super()._parse_wrapped_select(table)
        return self._parse_options(query) if isinstance(query, exp.Query) else query

    def _parse_source(self) -> exp.Expr:
        """The address of a source in quotes, or TABLE and the name that one has in Spark."""
        if not self._match(TokenType.TABLE):
            return cast("exp.Expr", self._string("expected the address of a source in quotes"))
        name = self._parse_table_parts()
        if name is None:
            self.raise_error("expected the name of a table after TABLE")
        assert name is not None
        return exp.Literal.string(f"{OF_SPARK}{name.sql(dialect='spark')}")

    def _parse_create(self) -> Any:
        self._expect("STREAM", "expected STREAM after CREATE")
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
        create = CreateStream(this=name, columns=columns, uris=uris)
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

    def _parse_declared(self, close: bool = True) -> exp.Expr:
        """Columns with their types, to the closing parenthesis or the end."""
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

    def _parse_insert(self) -> Any:
        self._expect("INTO", "expected INTO after INSERT")
        self._match(TokenType.TABLE)
        name = self._parse_id_var(any_token=False)
        if not name:
            self.raise_error("expected the name of the output")
        expected = "expected SELECT after the name of the output"
        if self._match(TokenType.L_PAREN, advance=False) and not self._is_query(self._next):
            self.raise_error(expected)
        query = self._parse_inner(expected)
        return self.expression(InsertInto(this=name, query=query))

    def _is_query(self, token: Any) -> bool:
        starts = (TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN)
        return token is not None and token.token_type in starts

    def _parse_inner(self, expected: str) -> exp.Expr | None:
        """The query inside another statement, with its options."""
        first = self._curr
        query = self._parse_options(self._parse_ddl_select())
        if not isinstance(query, exp.Query | QueryWith):
            self.raise_error(expected, first)
        return query

    def _parse_time_column(self) -> exp.Expr | None:
        column = self._parse_id_var()
        if not column:
            self.raise_error("expected the name of the time column")
        return column

    def _parse_table_alias(self, *args: Any, **kwargs: Any) -> exp.TableAlias | None:
        self._refuse_word_of_clause(self.TABLE_ALIAS_TOKENS)
        return super()._parse_table_alias(*args, **kwargs)

    def _parse_alias(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        self._refuse_word_of_clause(self.ALIAS_TOKENS)
        return super()._parse_alias(*args, **kwargs)

    def _refuse_word_of_clause(self, names: Collection[TokenType]) -> None:
        """Refuse a word that begins a clause, here or elsewhere, as a name without AS before it."""
        token = self._curr
        quoted = token and token.token_type is TokenType.IDENTIFIER
        if token and not quoted and token.token_type in names and token.text.upper() in WORDS:
            self.raise_error(NEEDS_AS)

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        if isinstance(this, exp.Table):
            return this
        return super()._parse_bracket(this)

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        this = super()._parse_table(*args, **kwargs)
        if not isinstance(this, exp.Table | exp.Subquery):
            return this
        if not self._match(TokenType.L_BRACKET, advance=False):
            return this
        window = self._parse_window_suffix(this)
        if not this.args.get("alias"):
            alias = self._parse_table_alias()
            if alias:
                this.set("alias", alias)
        if self._match(TokenType.L_BRACKET, advance=False):
            self.raise_error("expected only one window after a stream")
        return window

    def _parse_limit(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        """LIMIT, or FETCH, whose words FIRST and NEXT mean the same."""
        limit = super()._parse_limit(*args, **kwargs)
        if isinstance(limit, exp.Fetch) and limit.text("direction").upper() == "NEXT":
            limit.set("direction", "FIRST")
        return limit

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        """A join as written: sqlglot adds ON TRUE where there is no condition."""
        join = super()._parse_join(*args, **kwargs)
        if join is not None and join.args.get("on") == exp.true():
            written = self._prev.token_type is TokenType.TRUE
            join.set("on", exp.true() if written else None)
        return join

    def _parse_window_suffix(self, this: exp.Expr) -> StreamWindow:
        self._match(TokenType.L_BRACKET)
        measure: Callable[[], exp.Expr]
        if self._match_text_seq("RANGE"):
            kind, measure = "RANGE", self._parse_duration
        elif self._match_text_seq("ROWS"):
            kind, measure = "ROWS", self._parse_count
        else:
            self.raise_error("expected RANGE or ROWS after [")
        size = measure()
        slide = measure() if self._match_text_seq("SLIDE") else None
        if not self._match(TokenType.R_BRACKET):
            self.raise_error("expected ]" if slide else "expected SLIDE or ]")
        return self.expression(StreamWindow(this=this, kind=kind, size=size, slide=slide))

    def _parse_as_command(self, start: Any) -> Any:
        self.raise_error(STATEMENTS, start)

    def _parse_command(self) -> Any:
        self.raise_error(STATEMENTS, self._prev)


def _window_sql(to: Generator, node: exp.Expr) -> str:
    slide = to.sql(node, "slide")
    text = f"{node.args['kind']} {to.sql(node, 'size')}"
    return f"{to.sql(node, 'this')} [{text}{f' SLIDE {slide}' if slide else ''}]"


def _source_sql(to: Generator, node: exp.Expr) -> str:
    if node.name.startswith(OF_SPARK):
        return f"TABLE {node.name.removeprefix(OF_SPARK)}"
    return to.sql(node)


def _create_sql(to: Generator, node: exp.Expr) -> str:
    name = to.sql(node, "this")
    if query := to.sql(node, "query"):
        return f"CREATE STREAM {name} AS {query}"
    declared = node.args.get("columns")
    columns = ", ".join(to.sql(c) for c in declared.expressions) if declared else ""
    text = f"CREATE STREAM {name}{f' ({columns})' if columns else ''}"
    text += f" FROM {', '.join(_source_sql(to, u) for u in node.args['uris'])}"
    for clause in ("time", "disorder", "idle"):
        if value := to.sql(node, clause):
            text += f" {clause.upper()} {value}"
    if options := node.args.get("options"):
        pairs = [f"{to.sql(o, 'this')} {to.sql(o, 'expression')}" for o in options.expressions]
        text += f" OPTIONS ({', '.join(pairs)})"
    return text


class TidegateGenerator(SparkGenerator):
    """Prints the same syntax again."""

    TRANSFORMS = {
        **SparkGenerator.TRANSFORMS,
        StreamWindow: _window_sql,
        CreateStream: _create_sql,
        InsertInto: lambda to, node: f"INSERT INTO {to.sql(node, 'this')} {to.sql(node, 'query')}",
        **OPTIONS_SQL,
        QueryWith: lambda to, node: " ".join(
            [to.sql(node, "this"), *(to.sql(option) for option in node.expressions)]
        ),
    }


class Tidegate(Spark):
    """Spark's SQL with streams; registered with sqlglot as "tidegate"."""

    class Tokenizer(Spark.Tokenizer):
        """Spark 4 reads a doubled quote inside a string as one quote."""

        STRING_ESCAPES = ["\\", "'"]

    Parser = TidegateParser
    Generator = TidegateGenerator


@nested
def parse(text: str) -> list[exp.Expression]:
    """The statements of a script, without the empty ones; mistakes are one-line QueryErrors."""
    try:
        tokens = Tidegate().tokenize(text)
        refuse_slips(tokens)
        refuse_elsewhere(tokens)
        parser = TidegateParser(dialect=Tidegate())
        statements = [
            s
            for s in parser.parse(tokens, text)
            if isinstance(s, exp.Expression) and not isinstance(s, exp.Semicolon)
        ]
        for statement in statements:
            refuse_leftovers(statement, text, parser.places)
        return statements
    except ParseError as error:
        raise _parse_mistake(error) from None
    except TokenError as error:
        raise _token_mistake(error, text) from None


@nested
def parse_columns(text: str) -> exp.Schema:
    """The columns of a declaration as a program writes it: `zip STRING, amount DECIMAL(10,2)`."""

    def declared(parser: Any) -> exp.Expr:
        found: exp.Expr = parser._parse_declared(close=False)
        return found

    try:
        tokens = Tidegate().tokenize(text)
        (found,) = Tidegate().parser()._parse(declared, tokens, text)
    except ParseError as error:
        raise _parse_mistake(error) from None
    except TokenError as error:
        raise _token_mistake(error, text) from None
    assert isinstance(found, exp.Schema)
    return found


def _parse_mistake(error: ParseError) -> QueryError:
    first = error.errors[0] if error.errors else {}
    found = str(first.get("highlight") or "")
    message = re.sub(r"\x1b\[[0-9;]*m", "", str(first.get("description") or error))
    message = message[:1].lower() + message[1:]
    plain = next((p for key, p in _PLAIN.items() if message.startswith(key)), message)
    requirement = " ".join(plain.split())
    line, column = int(first.get("line") or 1), int(first.get("col") or 1)
    start = column - len(found) + 1 if found else column
    where = f"SQL line {line}, column {max(1, start)}"
    got = found or "the end of the statement"
    return QueryError(where, requirement, got, remedy(requirement, found))


def _token_mistake(error: TokenError, text: str) -> QueryError:
    unclosed = re.match(r"Missing (.+) from (\d+):", str(error.__cause__))
    if unclosed:
        where = f"SQL line {unclosed.group(2)}"
        return QueryError(where, f"expected a closing {unclosed.group(1)}", "the end of the text")
    return QueryError(
        f"SQL line {text.count(chr(10)) + 1}",
        "expected quotes and comments to be closed",
        "the end of the text",
    )
