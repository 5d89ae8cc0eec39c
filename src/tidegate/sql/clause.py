"""Parses, reads and prints clauses after queries and windows after streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlglot import TokenType, exp
from sqlglot.generator import Generator

from tidegate.query.clause.clause import Clause
from tidegate.query.clause.registry import CLAUSES
from tidegate.query.grammar import SyntaxPart, listed
from tidegate.query.window import WINDOWS, JoinWindow, Window
from tidegate.sql.piece import PieceParser, duration_sql
from tidegate.sql.syntax import QueryWith, StreamDuration, StreamWindow, WithClause


class ClauseParser(PieceParser):
    """Spark's parser, extended by windows after streams and clauses after queries.

    Its `read_*` methods are the `SyntaxReader` for values of the grammar.
    """

    def _parse_clauses(self, query: exp.Expr | None) -> exp.Expr | None:
        """A query with the clauses after it: WITH ... and EMIT EVERY."""
        clauses: list[exp.Expr] = []
        led = tuple(word for word, clause in CLAUSES.items() if clause.lead)
        while query is not None and (self._at_emit() or self._match(TokenType.WITH)):
            words = ("EMIT",) if self._at_emit() else led
            word = self.read_word(words, f"expected {listed(led)} after WITH")
            parts = self._parse_parts(word, CLAUSES[word].parts)
            clauses.append(WithClause(this=exp.var(word), expressions=parts))
        return QueryWith(this=query, expressions=clauses) if clauses else query

    def _at_emit(self) -> bool:
        """Whether EMIT EVERY begins here; EMIT alone may be a name."""
        return [t.text.upper() for t in (self._curr, self._next) if t] == ["EMIT", "EVERY"]

    def _parse_window_suffix(self, this: exp.Expr) -> StreamWindow:
        """`[word parts]` after a stream or a subquery."""
        self._match(TokenType.L_BRACKET)
        word = self.read_word(WINDOWS, f"expected {listed(tuple(WINDOWS))} after [")
        parts = self._parse_parts(word, WINDOWS[word].parts)
        if not self._match(TokenType.R_BRACKET):
            written = {part.this.name for part in parts}
            left = [p.word for p in WINDOWS[word].parts if p.field not in written]
            self.raise_error(f"expected {listed((*left, ']'))}")
        return self.expression(StreamWindow(this=this, kind=word, expressions=parts))

    def _parse_parts(self, head: str, parts: Sequence[SyntaxPart]) -> list[exp.Expr]:
        """The parts after the word `head`, each as field = value; omitted parts are missing."""
        found: list[exp.Expr] = []
        for part in parts:
            if part.required:
                self._expect(part.word, f"expected {part.word} after {head}")
            elif part.word and not self._match_text_seq(*part.word.split()):
                continue
            value = part.value.parse(self, part.word)
            if part.value.unit:
                self._expect(part.value.unit, f"expected {part.value.unit}")
            found.append(exp.EQ(this=exp.to_identifier(part.field), expression=value))
        return found

    read_count = PieceParser._parse_count
    read_duration = PieceParser._parse_duration
    read_range = PieceParser._parse_length

    def read_word(self, words: Iterable[str], expected: str) -> str:
        for word in sorted(words, key=lambda word: -len(word.split())):  # the longest first
            if self._match_text_seq(*word.split()):
                return word
        self.raise_error(expected)
        raise AssertionError(expected)

    def read_name(self, expected: str) -> exp.Expr:
        name = self._parse_string() or self._parse_id_var()
        if name is None:
            self.raise_error(expected)
        return exp.Literal.string(name.name if name is not None else "")


def read_clause(node: exp.Expression) -> Clause:
    """The clause of a parsed WITH."""
    kind = CLAUSES[node.this.name]
    return kind(**_read(node, kind.parts, f"{kind.lead} {kind.word}".lstrip()))


def read_window(node: StreamWindow) -> Window:
    """The window of a parsed stream; without SLIDE it tumbles."""
    kind = WINDOWS[node.args["kind"]]
    return kind.written(**_read(node, kind.parts, kind.word))


def read_join_window(node: StreamWindow) -> JoinWindow:
    """The window of one parsed side of a join, which moves with every tuple."""
    kind = WINDOWS[node.args["kind"]]
    return kind.side(**_read(node, kind.parts, kind.word))


def _read(node: exp.Expression, parts: Sequence[SyntaxPart], where: str) -> dict[str, Any]:
    known = {part.field: part for part in parts}
    written = {pair.this.name: pair.expression for pair in node.expressions}
    return {
        field: known[field].value.read(value, known[field].word or where)
        for field, value in written.items()
    }


def _parts_sql(to: Generator, node: exp.Expr, parts: Sequence[SyntaxPart]) -> str:
    known = {part.field: part for part in parts}
    words: list[str] = []
    for pair in node.expressions:
        part = known[pair.this.name]
        words += [part.word, to.sql(pair, "expression"), part.value.unit]
    return " ".join(filter(None, words))


def _clause_sql(to: Generator, node: exp.Expr) -> str:
    word = node.this.name
    lead = CLAUSES[word].lead
    return f"{lead} {word} {_parts_sql(to, node, CLAUSES[word].parts)}".lstrip()


def _window_sql(to: Generator, node: exp.Expr) -> str:
    word = node.args["kind"]
    return f"{to.sql(node, 'this')} [{word} {_parts_sql(to, node, WINDOWS[word].parts)}]"


CLAUSES_SQL: dict[type[exp.Expr], Callable[[Any, Any], str]] = {
    StreamDuration: duration_sql,
    StreamWindow: _window_sql,
    WithClause: _clause_sql,
}
"""How each node is printed as SQL."""
