"""Tidegate's SQL as a sqlglot dialect of Spark's: parses scripts and prints them again."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.generator import Generator
from sqlglot.generators.spark import SparkGenerator
from sqlglot.helper import seq_get
from sqlglot.parsers.spark import SparkParser

from tidegate.errors import QueryError
from tidegate.nesting import nested
from tidegate.operate.aggregate.definition import WithinFunction
from tidegate.operate.aggregate.registry import TABLE
from tidegate.sql.advice.foreign import refuse_foreign
from tidegate.sql.advice.remedy import NEEDS_AS, UNEXPECTED, WORDS, remedy
from tidegate.sql.advice.slip import STATEMENTS, refuse_slips
from tidegate.sql.clause import CLAUSES_SQL
from tidegate.sql.create import create_sql
from tidegate.sql.create_table import CreateTableParser, create_table_sql
from tidegate.sql.distinct import KEPT_SQL, KeepParser, keep_sql
from tidegate.sql.function import LISTS
from tidegate.sql.over.over import FrameParser
from tidegate.sql.slot import refuse_leftovers, whole
from tidegate.sql.syntax import (
    CreateStream,
    CreateTable,
    InsertInto,
    JoinedStreams,
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


_OF_SEVERAL = tuple(
    name for f in TABLE if len(f.arguments) > 1 or isinstance(f, WithinFunction) for name in f.sql
)
"""Aggregates of several columns, and those of an order. sqlglot has a place for each of them, and
where one is missing or too many are there it says so without naming the function; here they are
calls like others."""


def _call(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    """A call with its arguments in a plain list, however many there are."""
    return lambda arguments: exp.Anonymous(this=name, expressions=arguments)


class TidegateParser(KeepParser, FrameParser, CreateTableParser):
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

    ID_VAR_TOKENS = SparkParser.ID_VAR_TOKENS | {TokenType.MATCH_CONDITION}
    ALIAS_TOKENS = SparkParser.ALIAS_TOKENS | {TokenType.MATCH_CONDITION}

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

    def _parse_position(self, haystack_first: bool = False) -> exp.StrPosition:
        """POSITION(text IN column), or a list; sqlglot would drop what follows the third."""
        found: list[Any] = self._parse_csv(self._parse_bitwise)
        most = 3
        if self._match(TokenType.IN):
            found, most = [*found, self._parse_bitwise()], 2
        if len(found) > most:
            self.raise_error("the number of provided arguments", self._prev)
        needle, *others = found
        return self.expression(
            exp.StrPosition(this=seq_get(others, 0), substr=needle, position=seq_get(others, 1))
        )

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
        return self._parse_clauses(super()._parse_statement())

    def _parse_wrapped_select(self, table: bool = False) -> exp.Expr | None:
        query = super()._parse_wrapped_select(table)
        if table and isinstance(query, exp.Table | exp.Subquery | StreamWindow):
            query = self._parse_joined(query)
        return self._parse_clauses(query) if isinstance(query, exp.Query) else query

    def _parse_joined(self, first: exp.Expr) -> exp.Expr:
        """A stream with the joins that follow it in parentheses."""
        joins = [*(first.args.get("joins") or ()), *self._parse_joins()]
        first.set("joins", None)
        return self.expression(JoinedStreams(this=first, joins=joins)) if joins else first

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

    def _parse_table_alias(self, *args: Any, **kwargs: Any) -> exp.TableAlias | None:
        if self._at_keep() or self._at_emit():
            return None
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

    def _parse_csv(
        self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA
    ) -> list[Any]:
        """A list; sqlglot would pass over an item that is missing beside a comma."""

        def item() -> Any:
            begun, found = self._prev, parse_method()
            last = begun is not None and begun is self._prev and begun.token_type is sep
            more = self._match_set(
                (TokenType.CUBE, TokenType.ROLLUP, TokenType.GROUPING_SETS), advance=False
            )
            if found is None and (last or self._match(sep, advance=False)) and not more:
                self.raise_error("expected another operand or argument")
            return found

        return super()._parse_csv(item, sep)

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        """A join as written: sqlglot adds ON TRUE where there is no condition."""
        comma = self._match(TokenType.COMMA, advance=False)
        join = super()._parse_join(*args, **kwargs)
        if comma and join is None:
            self.raise_error("expected the name of a stream")
        if join is not None and join.args.get("on") == exp.true():
            written = self._prev.token_type is TokenType.TRUE
            join.set("on", exp.true() if written else None)
        return join

    def _parse_as_command(self, start: Any) -> Any:
        self.raise_error(STATEMENTS, start)

    def _parse_command(self) -> Any:
        self.raise_error(STATEMENTS, self._prev)


class TidegateGenerator(SparkGenerator):
    """Prints the same syntax again."""

    TRANSFORMS = {
        **{k: v for k, v in SparkGenerator.TRANSFORMS.items() if k is not exp.Select},
        CreateStream: create_sql,
        CreateTable: create_table_sql,
        InsertInto: lambda to, node: f"INSERT INTO {to.sql(node, 'this')} {to.sql(node, 'query')}",
        **CLAUSES_SQL,
        exp.Unnest: Generator.unnest_sql,
        JoinedStreams: lambda to, node: (
            to.sql(node, "this") + to.expressions(node, "joins", sep="")
        ),
        **KEPT_SQL,
        QueryWith: lambda to, node: " ".join(
            [to.sql(node, "this"), *(to.sql(option) for option in node.expressions)]
        ),
    }

    def after_limit_modifiers(self, expression: exp.Expr) -> list[str]:
        return [*super().after_limit_modifiers(expression), keep_sql(self, expression)]


class Tidegate(Spark):
    """Spark's SQL with streams; registered with sqlglot as "tidegate"."""

    class Tokenizer(Spark.Tokenizer):
        """Spark 4 reads a doubled quote inside a string as one quote."""

        STRING_ESCAPES = ["\\", "'"]
        KEYWORDS = {**Spark.Tokenizer.KEYWORDS, "MATCH_CONDITION": TokenType.MATCH_CONDITION}

    Parser = TidegateParser
    Generator = TidegateGenerator


@nested
def parse(text: str) -> list[exp.Expression]:
    """The statements of a script, without the empty ones; mistakes are one-line QueryErrors."""
    try:
        tokens = Tidegate().tokenize(text)
        refuse_slips(tokens)
        refuse_foreign(tokens)
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
