"""The syntax nodes Tidegate adds to Spark's SQL."""

from __future__ import annotations

from sqlglot import exp

OF_SPARK = "table:"
"""How the address of a source begins that is a table or view of Spark's catalog."""


class StreamDuration(exp.Expression):
    """`15 MINUTES`, or the text '15 minutes' (then without a unit)."""

    arg_types = {"this": True, "unit": False}


class StreamWindow(exp.Expression):
    """`this [RANGE size SLIDE slide]` or `this [ROWS ...]` over a table or a subquery."""

    arg_types = {"this": True, "kind": True, "size": True, "slide": False}


class CreateStream(exp.Expression):
    """`CREATE STREAM this (columns) FROM uris TIME time DISORDER d IDLE t OPTIONS (options)`.

    Or `CREATE STREAM this AS query`.
    """

    arg_types = {
        "this": True,
        "columns": False,
        "uris": False,
        "time": False,
        "disorder": False,
        "idle": False,
        "options": False,
        "query": False,
    }


class InsertInto(exp.Expression):
    """`INSERT INTO this query`; `with_` holds CTEs written before it, which binding refuses."""

    arg_types = {"this": True, "query": True, "with_": False}


class WithError(exp.Expression):
    """`WITH ERROR this PERCENT CONFIDENCE confidence PERCENT BUDGET budget ROWS BY by`."""

    arg_types = {"this": True, "confidence": False, "budget": False, "by": False}


class WithBalance(exp.Expression):
    """`WITH BALANCE ERROR this PERCENT CONFIDENCE confidence PERCENT`."""

    arg_types = {"this": True, "confidence": False}


class WithShed(exp.Expression):
    """`WITH SHED this PERCENT BY by`."""

    arg_types = {"this": True, "by": False}


class WithLatency(exp.Expression):
    """`WITH LATENCY this`."""

    arg_types = {"this": True}


class WithPartitioner(exp.Expression):
    """`WITH PARTITIONER this`, a name or a text."""

    arg_types = {"this": True}


class QueryWith(exp.Expression):
    """A query and the WITH clauses that follow it; `with_` holds CTEs written before it."""

    arg_types = {"this": True, "expressions": True, "with_": False}


CLASSES: tuple[type[exp.Expr], ...] = (
    *(StreamDuration, StreamWindow, CreateStream, InsertInto, QueryWith),
    *(WithError, WithBalance, WithShed, WithLatency, WithPartitioner),
)
"""All of them; every slot acts, but for the CTEs before INSERT INTO."""
