"""Answers the statements of `tidegate sql`: remembers streams and shows rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tidegate.errors import OptionError, QueryError, near
from tidegate.plan.explain import explain
from tidegate.query.binder import UnknownKernel
from tidegate.query.name import find_name
from tidegate.query.node.node import Input, Node, StreamDef
from tidegate.query.output import Output
from tidegate.query.runnable import READ_AT_MOST
from tidegate.query.table import TableDef
from tidegate.schema import type_name
from tidegate.session.look import Preview, look, planned
from tidegate.session.place import Place
from tidegate.session.script import streams_of
from tidegate.sql.bind import bind
from tidegate.sql.dialect import parse
from tidegate.sql.script import NamedQuery, parts_of
from tidegate.sql.syntax import CreateStream, CreateTable, InsertInto

HELP = """\
SELECT ...;              the first rows of the result
CREATE STREAM ...;       a stream for the statements that follow; again, it replaces the one before
CREATE TABLE ...;        a table to join streams to, for the same
EXPLAIN SELECT ...;      the plan
DESCRIBE name;           the columns of a stream or a table, as \\d name
.streams                 the streams there are, as SHOW STREAMS; and \\d
.rows N                  show N rows of a result
.read N                  read at most N rows of the input for a result
.help, .quit             this text; the end, as Ctrl-D. Ctrl-C stops a query."""

_WORD = re.compile(r"\s*([.\\]?\w+)\s*(.*)", re.DOTALL)


class SqlShell:
    """One interactive session; grows with the streams that it defines.

    `uris` and `times` define streams, by name, that exist from the start.
    """

    def __init__(
        self,
        place: Place,
        *,
        uris: Mapping[str, Sequence[str]] | None = None,
        times: Mapping[str, str] | None = None,
        rows: int = 20,
    ) -> None:
        self._place = place
        self._uris, self._times = dict(uris or {}), dict(times or {})
        self._rows, self._read = rows, READ_AT_MOST
        self._made: dict[str, Any] = {}
        self.streams: dict[str, Node | TableDef] = {}
        """What queries can read, by name: streams, and tables to join them to."""
        self._remember({})

    def answer(self, statement: str) -> str | Preview:
        """The result of a statement (without semicolon). One with a mistake changes nothing."""
        match = _WORD.match(statement)
        answer = _ANSWERS.get(match[1].lower()) if match else None
        if match and answer is not None:
            return answer(self, match[2].strip())
        if match and match[1][0] in ".\\":
            known = [name for name in _ANSWERS if name[0] in ".\\"]
            raise OptionError("shell", "no command has this name", match[1], near(match[1], known))
        return self._statement(statement)

    def _statement(self, text: str) -> str | Preview:
        (tree,) = parse(text) or (None,)
        if tree is None:
            return ""
        if isinstance(tree, InsertInto):
            raise QueryError(
                "INSERT INTO",
                "the shell shows rows and writes none",
                tree.this.name,
                "Write the SELECT alone here; `tidegate run --out DIR` writes its rows.",
            )
        if isinstance(tree, CreateStream | CreateTable):
            name = tree.this.name
            self._remember({**self._made, name.lower(): tree})
            return f"{'table' if isinstance(tree, CreateTable) else 'stream'} {self.describe(name)}"
        node = self._output(tree).node
        shown = look(node, self._place, {}, rows=self._rows, read=self._read)
        assert isinstance(shown, Preview)  # of at least one row
        return shown

    def _output(self, tree: Any) -> Output:
        script = parts_of([*self._made.values(), tree])
        return bind(script, streams_of(script, uris=self._uris, times=self._times))[0]

    def _remember(self, made: dict[str, Any]) -> None:
        """Keep streams, after all of them have been checked."""
        script = parts_of(list(made.values()))
        streams = streams_of(script, uris=self._uris, times=self._times)
        found = {n: Input(s) if isinstance(s, StreamDef) else s for n, s in streams.items()}
        for view in script.views:
            alone = replace(script, outputs=(NamedQuery(None, view.tree),))
            found[view.name] = bind(alone, streams)[0].node
        self._made, self.streams = made, found

    def columns(self) -> Mapping[str, Sequence[str]]:
        """The columns of each stream and table, by name."""
        return {name: _columns(held) for name, held in self.streams.items()}

    def describe(self, name: str) -> str:
        """The name of a stream and its columns, one per line."""
        found = find_name(name.strip('`"; '), list(self.streams))
        if found is None:
            wanted = "no stream and no table has this name"
            raise QueryError("DESCRIBE", wanted, name, near(name, self.streams))
        node = self.streams[found]
        try:
            types = {f.name: type_name(f.type) for f in node.schema}
        except UnknownKernel:  # only Spark knows, which is not started to answer this
            types = dict.fromkeys(_columns(node), "")
        width = max(map(len, types))
        return "\n".join([found, *(f"  {n:{width}}  {t}".rstrip() for n, t in types.items())])

    def _described(self, name: str) -> str:
        return self.describe(name) if name else self._listed(name)

    def _listed(self, _: str) -> str:
        lines = [f"{name}: {', '.join(held)}" for name, held in self.columns().items()]
        return "\n".join(lines) or "none; write CREATE STREAM name FROM 'file' TIME column;"

    def _explained(self, text: str) -> str:
        (tree,) = parse(text) or (None,)
        if tree is None or isinstance(tree, InsertInto | CreateStream | CreateTable):
            raise QueryError("EXPLAIN", "needs a SELECT", text or "none")
        output = self._output(tree)
        plan, _ = planned((Output(None, output.node),), self._place, {})
        return explain((output,), plan)

    def _show_rows(self, text: str) -> str:
        self._rows = _number(".rows", text)
        return f"rows shown of a result: {self._rows:,}"

    def _read_rows(self, text: str) -> str:
        self._read = _number(".read", text)
        return f"rows read of the input, at most: {self._read:,}"


_ANSWERS: dict[str, Callable[[SqlShell, str], str]] = {
    "explain": SqlShell._explained,
    "describe": SqlShell._described,
    "desc": SqlShell._described,
    "\\d": SqlShell._described,
    "show": SqlShell._listed,
    ".streams": SqlShell._listed,
    ".rows": SqlShell._show_rows,
    ".read": SqlShell._read_rows,
    ".help": lambda _, text: HELP,
    "\\h": lambda _, text: HELP,
}
"""Handlers by the first word of a statement; all other statements are SQL."""


def _columns(held: Node | TableDef) -> Sequence[str]:
    """The columns of a stream or table."""
    return held.schema.names if isinstance(held, TableDef) else held.names


def is_command(text: str) -> bool:
    """Whether a line is a shell command, which needs no semicolon."""
    return text.lstrip()[:1] in (".", "\\")


def _number(where: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise OptionError(where, "must be a whole number of rows from 1 on", text or "none")
    return int(text)
