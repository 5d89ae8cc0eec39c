"""The syntax nodes Tidegate adds to Spark's SQL."""

from __future__ import annotations

from sqlglot import exp

OF_SPARK = "table:"
"""The prefix of a source's address that is a table or view of Spark's catalog."""


class StreamDuration(exp.Expression):
    """`15 MINUTES`, or the text '15 minutes' (then without a unit)."""

    arg_types = {"this": True, "unit": False}


class StreamWindow(exp.Expression):
    """`this [kind ...]` over a table or a subquery; the parts of the window as field = value."""

    arg_types = {"this": True, "kind": True, "expressions": True}


class CreateStream(exp.Expression):
    """`CREATE STREAM this (columns) FROM uris TIME time DISORDER d IDLE t OPTIONS (options)`.

    After the address of a history may come `THEN then UNTIL until`.
    Or `CREATE STREAM this AS query`.
    """

    arg_types = {
        "this": True,
        "columns": False,
        "uris": False,
        "then": False,
        "until": False,
        "time": False,
        "disorder": False,
        "idle": False,
        "options": False,
        "query": False,
    }


class CreateTable(exp.Expression):
    """`CREATE TABLE this (columns) FROM uris VALID FROM valid REFRESH EVERY refresh OPTIONS`."""

    arg_types = {
        "this": True,
        "columns": False,
        "uris": True,
        "valid": False,
        "refresh": False,
        "options": False,
    }


class JoinedStreams(exp.Expression):
    """Streams and their joins in parentheses, which a window may follow."""

    arg_types = {"this": True, "joins": True}


class InsertInto(exp.Expression):
    """`INSERT INTO this query`; `with_` holds CTEs written before it, which binding refuses."""

    arg_types = {"this": True, "query": True, "with_": False}


class KeptOn(exp.Expression):
    """The columns `this` of DISTINCT ON, with `KEEP keep WITHIN within` after the query."""

    arg_types = {"this": True, "keep": True, "within": True}


class WithClause(exp.Expression):
    """`WITH this`, and the parts of the clause as field = value."""

    arg_types = {"this": True, "expressions": True}


class QueryWith(exp.Expression):
    """A query and the WITH clauses that follow it; `with_` holds CTEs written before it."""

    arg_types = {"this": True, "expressions": True, "with_": False}


CLASSES: tuple[type[exp.Expr], ...] = (
    *(StreamDuration, StreamWindow, JoinedStreams, CreateStream, InsertInto, QueryWith, WithClause),
    *(KeptOn, CreateTable),
)
"""All of them. Every slot is read, except the CTEs before INSERT INTO."""
