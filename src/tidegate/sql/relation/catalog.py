"""Finds the node for a name in FROM: a stream, or a query of the script."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlglot import exp

from tidegate.errors import QueryError, UserError, near
from tidegate.query.name import find_name
from tidegate.query.node.node import Input, Node, StreamDef
from tidegate.query.table import TableDef
from tidegate.sql.script import Script

_FILES = (".csv", ".json", ".jsonl", ".ndjson", ".orc", ".parquet", ".gz", ".zst")
_VIEW = "CREATE STREAM"


Known = StreamDef | Node | TableDef
"""What a name stands for if no query of the script makes it."""


@dataclass
class Catalog:
    """What a script can read: the given streams and tables, and the results of its own queries.

    A query that is read several times is bound once, so that it is one node of the plan.
    """

    streams: Mapping[str, Known]
    views: Mapping[str, exp.Expression]
    outputs: tuple[str, ...]
    bind: Callable[[Catalog, exp.Expression], Node]
    made: dict[str, Node] = field(default_factory=dict)
    making: list[str] = field(default_factory=list)
    parts: dict[str, Node] = field(default_factory=dict)
    """The queries of WITH that were read, by name; the first of each name."""

    @classmethod
    def of(
        cls,
        script: Script,
        streams: Mapping[str, Known],
        bind: Callable[[Catalog, exp.Expression], Node],
    ) -> Catalog:
        """The catalog of a script over existing streams; all its queries are checked."""
        for view in script.views:
            if given := find_name(view.name, list(streams)):
                raise QueryError(
                    f"{_VIEW} {view.name}",
                    "a name can be used once",
                    f"{given}, which is there already",
                    "Give the new stream another name.",
                )
        outputs = tuple(o.name for o in script.outputs if o.name is not None)
        catalog = cls(streams, {v.name: v.tree for v in script.views}, outputs, bind)
        for view in script.views:
            catalog.node(view.name)
        return catalog

    def node(self, name: str) -> Node:
        """The node for a name in FROM; raises for an unknown name and lists similar ones."""
        known = [*self.streams, *self.views]
        found = find_name(name, known)
        if found is None:
            raise QueryError("FROM", "no stream has this name", name, self._remedy(name, known))
        if found in self.views:
            return self._view(found)
        stream = self.streams[found]
        if isinstance(stream, TableDef):
            raise QueryError(
                "FROM",
                "a query needs a stream, which a table can be joined to",
                f"table {found}",
                f"Join a stream to it, FROM ... JOIN {found} ON ..., or make it a stream with "
                f"CREATE STREAM {found} FROM 'uri' TIME ts.",
            )
        return Input(stream) if isinstance(stream, StreamDef) else stream

    def table(self, name: str) -> TableDef | None:
        """The table of a name; None for a stream or an unknown name."""
        found = find_name(name, [*self.streams, *self.views])
        known = None if found is None else self.streams.get(found)
        return known if isinstance(known, TableDef) else None

    @property
    def named(self) -> tuple[tuple[str, Node], ...]:
        """The script's named nodes, for observers of the plan."""
        return (*self.made.items(), *self.parts.items())

    def _view(self, name: str) -> Node:
        if name in self.making:
            circle = [*self.making[self.making.index(name) :], name]
            raise QueryError(
                f"{_VIEW} {name}",
                "a stream cannot be made of itself",
                " from ".join(circle),
                "Read from a source, or give one of the streams another name.",
            )
        if name not in self.made:
            self.making.append(name)
            with inside(f"{_VIEW} {name}"):
                self.made[name] = self.bind(self, self.views[name])
            self.making.pop()
        return self.made[name]

    def _remedy(self, name: str, known: list[str]) -> str:
        if output := find_name(name, self.outputs):
            return f"{output} is an output: write CREATE STREAM {output} AS SELECT ... to read it."
        if "/" in name or name.lower().endswith(_FILES):
            return f"Write CREATE STREAM r FROM '{name}' TIME ts; and FROM r."
        if not known:
            return (
                f"There are none: write CREATE STREAM {name} FROM 'uri', or give --stream "
                f"{name}=URI, in Python {name}=stream."
            )
        return near(name, known)


@contextmanager
def inside(statement: str | None) -> Iterator[None]:
    """Adds the statement's name to errors in the block that do not name one."""
    try:
        yield
    except UserError as error:
        if statement is None or error.where.startswith(_VIEW):
            raise
        where = f"{statement}, {error.where}"
        raise type(error)(where, error.requirement, error.got, error.remedy) from None


def names_read(script: Script) -> list[str]:
    """The names that a script's queries read, except names of its own queries."""
    trees = [*(v.tree for v in script.views), *(o.tree for o in script.outputs)]
    own = {cte.alias.lower() for tree in trees for cte in tree.find_all(exp.CTE)}
    read = (table.name for tree in trees for table in tree.find_all(exp.Table))
    return list(dict.fromkeys(name for name in read if name and name.lower() not in own))
