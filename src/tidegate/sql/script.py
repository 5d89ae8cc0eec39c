"""Reads a script into statements: streams, views, and the queries whose rows are output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from tidegate.calendar.duration import duration_text
from tidegate.errors import QueryError
from tidegate.query.grammar import DurationValue
from tidegate.query.output import check_names
from tidegate.source.backfill.address import backfill_text
from tidegate.source.subscription import AS_FOUND, Reading
from tidegate.sql.columns import schema_of
from tidegate.sql.dialect import parse
from tidegate.sql.syntax import CreateStream, CreateTable, InsertInto, QueryWith

_LENGTH = DurationValue()


@dataclass(frozen=True)
class Create:
    """A CREATE STREAM; the schema may come from the sources, the time from an option."""

    name: str
    uris: tuple[str, ...]
    time: str | None = None
    disorder_us: int = 0
    idle_us: int | None = None
    reading: Reading = AS_FOUND


@dataclass(frozen=True)
class TableSource:
    """A CREATE TABLE; the schema may come from the files."""

    name: str
    uris: tuple[str, ...]
    reading: Reading = AS_FOUND
    valid_from: str | None = None
    refresh_us: int | None = None


@dataclass(frozen=True)
class View:
    """CREATE STREAM name AS a query."""

    name: str
    tree: exp.Expression


@dataclass(frozen=True)
class NamedQuery:
    """A query whose rows are output, under its name in INSERT INTO; None for a plain SELECT."""

    name: str | None
    tree: exp.Expression


@dataclass(frozen=True)
class Script:
    """Streams made of sources, streams made of queries, and the queries whose rows are output.

    `tables` are those that streams are joined to.
    """

    creates: tuple[Create, ...]
    views: tuple[View, ...]
    outputs: tuple[NamedQuery, ...]
    tables: tuple[TableSource, ...] = ()

    def foreign_functions(self) -> list[str]:
        """The called functions that are not part of SQL, in text order."""
        trees = [view.tree for view in self.views] + [output.tree for output in self.outputs]
        return [call.name for tree in trees for call in tree.find_all(exp.Anonymous)]


def read_script(text: str) -> Script:
    """Reads CREATE STREAM, CREATE TABLE and queries; mistakes are one-line QueryErrors.

    The queries are a single SELECT, or any number of INSERT INTO.
    """
    return script_of(parse(text))


def script_of(statements: Sequence[exp.Expression]) -> Script:
    """The script of parsed statements; it must have one output, or several named ones."""
    script = parts_of(statements)
    _check_outputs(script.outputs)
    return script


def parts_of(statements: Sequence[exp.Expression]) -> Script:
    """The script of parsed statements, also without any query."""
    streams: dict[str, Create | View | TableSource] = {}
    outputs: list[NamedQuery] = []
    for statement in statements:
        if isinstance(statement, CreateStream | CreateTable):
            create: Create | View | TableSource
            if isinstance(statement, CreateTable):
                create, kind = _table(statement), "TABLE"
            else:
                create, kind = _create(statement), "STREAM"
            if create.name.lower() in streams:
                raise QueryError(
                    f"CREATE {kind}",
                    "a name can be used once",
                    f"{create.name} twice",
                    f"Give one of the {kind.lower()}s another name.",
                )
            streams[create.name.lower()] = create
        elif isinstance(statement, InsertInto):
            outputs.append(_insert(statement))
        elif isinstance(statement, exp.Query | QueryWith):
            outputs.append(NamedQuery(None, statement))
        else:
            raise QueryError(
                "SQL",
                "a script holds CREATE STREAM, INSERT INTO and SELECT",
                _short(statement.sql(dialect="tidegate", comments=False)),
                "Leave it out; results go where --out says.",
            )
    creates = tuple(s for s in streams.values() if isinstance(s, Create))
    views = tuple(s for s in streams.values() if isinstance(s, View))
    tables = tuple(s for s in streams.values() if isinstance(s, TableSource))
    return Script(creates, views, tuple(outputs), tables)


def _check_outputs(outputs: Sequence[NamedQuery]) -> None:
    if not outputs:
        raise QueryError("SQL", "a script needs a SELECT", "none", "Add a SELECT statement.")
    unnamed = [o for o in outputs if o.name is None]
    if unnamed and len(outputs) > 1:
        raise QueryError(
            "SQL",
            "each of several queries needs a name",
            _short(unnamed[0].tree.sql(dialect="tidegate", comments=False)),
            "Name each with INSERT INTO name SELECT ...",
        )
    check_names([o.name for o in outputs], "INSERT INTO")


def _insert(node: InsertInto) -> NamedQuery:
    return NamedQuery(node.this.name, node.args["query"])


def _create(node: CreateStream) -> Create | View:
    name = node.this.name
    if query := node.args.get("query"):
        return View(name, query)
    where = f"CREATE STREAM {name}"
    time, disorder, idle = (node.args.get(a) for a in ("time", "disorder", "idle"))
    disorder_us = 0 if disorder is None else _LENGTH.read(disorder, where)
    idle_us = None if idle is None else _LENGTH.read(idle, where)
    if disorder_us < 0:
        raise QueryError(where, "DISORDER must not be negative", duration_text(disorder_us))
    if idle_us is not None and idle_us <= 0:
        raise QueryError(where, "IDLE must be longer than zero", duration_text(idle_us))
    uris = tuple(u.name for u in node.args["uris"])
    if then := node.args.get("then"):
        until = node.args.get("until")
        uris = (backfill_text(uris[0], then.name, None if until is None else until.name),)
    at = None if time is None else time.name
    return Create(name, uris, at, disorder_us, idle_us, _reading(node, where))


def _table(node: CreateTable) -> TableSource:
    name = node.this.name
    where = f"CREATE TABLE {name}"
    valid, refresh = node.args.get("valid"), node.args.get("refresh")
    return TableSource(
        name,
        tuple(u.name for u in node.args["uris"]),
        _reading(node, where),
        None if valid is None else valid.name,
        None if refresh is None else _LENGTH.read(refresh, where),
    )


def _reading(node: CreateStream | CreateTable, where: str) -> Reading:
    columns, given = node.args.get("columns"), node.args.get("options")
    options: dict[str, object] = {}
    for pair in given.expressions if given else ():
        name, value = pair.this.name, pair.expression
        if name in options:
            raise QueryError(where, "an option can be given once", f"{name} twice")
        options[name] = value.this if isinstance(value, exp.Boolean) else value.name
    return Reading.of(schema_of(columns, where) if columns else None, options, where)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]} ..."
