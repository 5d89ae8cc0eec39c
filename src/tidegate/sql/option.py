"""The WITH clauses after a query, between the text of a script and what they ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import TokenType, exp
from sqlglot.generator import Generator

from tidegate.query.option import METRICS
from tidegate.sql.piece import PieceParser, duration_sql
from tidegate.sql.syntax import (
    QueryWith,
    StreamDuration,
    WithBalance,
    WithError,
    WithLatency,
    WithPartitioner,
    WithShed,
)


class OptionParser(PieceParser):
    """Spark's parser with clauses that say what a query wants beside its answer."""

    def _parse_options(self, query: exp.Expr | None) -> exp.Expr | None:
        options: list[exp.Expr] = []
        while query is not None and self._match(TokenType.WITH):
            if self._match_text_seq("ERROR"):
                options.append(self._parse_error_option())
            elif self._match_text_seq("BALANCE"):
                options.append(self._parse_balance_option())
            elif self._match_text_seq("SHED"):
                share = self._parse_percent()
                by = self._parse_shed_method() if self._match_text_seq("BY") else None
                options.append(WithShed(this=share, by=by))
            elif self._match_text_seq("LATENCY"):
                options.append(WithLatency(this=self._parse_duration()))
            elif self._match_text_seq("PARTITIONER"):
                options.append(WithPartitioner(this=self._parse_partitioner()))
            else:
                self.raise_error("expected PARTITIONER, ERROR, BALANCE, SHED or LATENCY after WITH")
        return QueryWith(this=query, expressions=options) if options else query

    def _parse_error_option(self) -> exp.Expr:
        option = WithError(this=self._parse_percent())
        if self._match_text_seq("CONFIDENCE"):
            option.set("confidence", self._parse_percent())
        if self._match_text_seq("BUDGET"):
            option.set("budget", self._parse_count("expected a number of ROWS"))
            self._expect("ROWS", "expected ROWS")
        if self._match_text_seq("BY"):
            option.set("by", self._parse_metric())
        return option

    def _parse_balance_option(self) -> exp.Expr:
        self._expect("ERROR", "expected ERROR after BALANCE")
        option = WithBalance(this=self._parse_percent())
        if self._match_text_seq("CONFIDENCE"):
            option.set("confidence", self._parse_percent())
        return option

    def _parse_metric(self) -> exp.Expr:
        for metric in METRICS:
            if self._match_text_seq(metric.upper()):
                return exp.var(metric.upper())
        self.raise_error("expected MAX, MEAN or RMS after BY")
        return exp.var("MAX")

    def _parse_percent(self) -> exp.Expr:
        share = self._parse_count("expected a number and PERCENT")
        self._expect("PERCENT", "expected PERCENT")
        return share

    def _parse_partitioner(self) -> exp.Expr:
        name = self._parse_string() or self._parse_id_var()
        if name is None:
            self.raise_error("expected a partitioner, as WITH PARTITIONER cam or 'cam?d=3'")
        return exp.Literal.string(name.name if name is not None else "")

    def _parse_shed_method(self) -> exp.Expr:
        for method in ("CONCEPT", "UNIFORM"):
            if self._match_text_seq(method):
                return exp.var(method)
        self.raise_error("expected CONCEPT or UNIFORM after BY")
        return exp.var("CONCEPT")


def _error_sql(to: Generator, node: exp.Expr) -> str:
    text = f"WITH ERROR {to.sql(node, 'this')} PERCENT"
    if confidence := to.sql(node, "confidence"):
        text += f" CONFIDENCE {confidence} PERCENT"
    if budget := to.sql(node, "budget"):
        text += f" BUDGET {budget} ROWS"
    if by := to.sql(node, "by"):
        text += f" BY {by}"
    return text


def _shed_sql(to: Generator, node: exp.Expr) -> str:
    by = to.sql(node, "by")
    return f"WITH SHED {to.sql(node, 'this')} PERCENT{f' BY {by}' if by else ''}"


def _balance_sql(to: Generator, node: exp.Expr) -> str:
    confidence = to.sql(node, "confidence")
    text = f"WITH BALANCE ERROR {to.sql(node, 'this')} PERCENT"
    return f"{text} CONFIDENCE {confidence} PERCENT" if confidence else text


OPTIONS_SQL: dict[type[exp.Expr], Callable[[Any, Any], str]] = {
    StreamDuration: duration_sql,
    WithError: _error_sql,
    WithBalance: _balance_sql,
    WithShed: _shed_sql,
    WithLatency: lambda to, node: f"WITH LATENCY {to.sql(node, 'this')}",
    WithPartitioner: lambda to, node: f"WITH PARTITIONER {to.sql(node, 'this')}",
}
"""How each is printed again."""
