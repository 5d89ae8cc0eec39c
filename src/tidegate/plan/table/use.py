"""Finds how the subqueries of a plan use its tables: by which keys, or as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidegate.calendar.duration import duration_text
from tidegate.errors import SourceError
from tidegate.expression.tree import describe
from tidegate.memory_limit import size_text
from tidegate.operate.table_join.index import ROW_BYTES
from tidegate.operate.table_join.key import TableKey, key_of
from tidegate.operate.table_join.lookup import TableLookup
from tidegate.plan.physical import Plan
from tidegate.query.table import LargeTable, TableContent, TableDef
from tidegate.remote.scheme import shown
from tidegate.source.table import MOST_BYTES


class TableLimit(NamedTuple):
    """How large tables may be together for tasks to hold them, and how large with one that cannot
    be read by key."""

    held_bytes: int = MOST_BYTES
    whole_bytes: int = MOST_BYTES


USUAL = TableLimit()


class WholeUse(NamedTuple):
    """Why every task needs all rows of a table, and what to do where they are too many."""

    why: str
    remedy: str


_FEWER = "leave columns and rows out that no query needs"
NO_KEY = WholeUse(
    "a join compares no column of it with =",
    f"Compare one with = in ON, {_FEWER}, or make it a stream with TIME.",
)
INITIAL = WholeUse("it is the initial state of a process", f"{_FEWER.capitalize()}.")


@dataclass(frozen=True)
class TableUse:
    """The keys that find rows of a table, how many indexes of it there are, and why it is needed
    whole; None where it is not."""

    keys: tuple[TableKey, ...]
    whole: WholeUse | None
    indexes: int = 1

    @property
    def row_bytes(self) -> int:
        """What tasks hold for each row besides its columns."""
        return 0 if self.whole else ROW_BYTES * self.indexes

    def most_bytes(self, limit: TableLimit) -> int:
        """The limit that counts for this use."""
        return limit.whole_bytes if self.whole else limit.held_bytes

    def check_by_key(self, table: TableDef, limit: TableLimit, held: Sequence[str] = ()) -> None:
        """Refuse a table that is too large to be held beside others, where it is needed whole."""
        if self.whole is not None:
            most, beside = size_text(limit.whole_bytes), ", ".join(held)
            beside = f" beside {beside}, which tasks hold too" if held else ""
            raise SourceError(
                table.where,
                f"must not be larger than {most}{beside}, because every task holds it: "
                f"{self.whole.why}",
                f"{most} and more",
                self.whole.remedy,
            )


def table_uses(plan: Plan) -> Mapping[str, TableUse]:
    """By the name of each table how it is used."""
    keys: dict[str, dict[str, TableKey]] = {table.name: {} for table in plan.tables}
    lookups: dict[str, set[TableLookup]] = {table.name: set() for table in plan.tables}
    whole: dict[str, WholeUse] = {}
    for subquery in plan.subqueries:
        for lookup in (lookup for prefix in subquery.prefixes for lookup in prefix.lookups):
            key = key_of(lookup)
            lookups[lookup.table].add(lookup)
            if key is None:
                whole[lookup.table] = NO_KEY
            else:
                keys[lookup.table].setdefault(key.name, key)
        whole |= dict.fromkeys(subquery.operator.traits.tables, INITIAL)
    return {
        name: TableUse(tuple(of.values()), whole.get(name), max(len(lookups[name]), 1))
        for name, of in keys.items()
    }


class TableRoom:
    """Counts what tasks hold of all tables of a query, so that the limit is one for their sum.

    Tables that are needed whole should be read first: others can be read by key.
    """

    def __init__(self, limit: TableLimit) -> None:
        self._limit = limit
        self._held: dict[str, int] = {}

    def hold(self, name: str, use: TableUse, rows: int, bytes_: int) -> None:
        """Count a table that tasks hold."""
        self._held[name] = bytes_ + use.row_bytes * rows

    def left(self, name: str) -> TableLimit:
        """What the other tables leave for one."""
        others = sum(held for other, held in self._held.items() if other != name)
        return TableLimit(*(max(most - others, 0) for most in self._limit))

    def read(self, table: TableDef, use: TableUse) -> TableContent | LargeTable:
        """The rows of a table, which is held from now on, or large where that is too much.

        Refuses a large one that is needed whole: what is held stays counted then.
        """
        left = self.left(table.name)
        content = table.read(use.most_bytes(left), row_bytes=use.row_bytes)
        if isinstance(content, LargeTable):
            use.check_by_key(table, left, [name for name in self._held if name != table.name])
            self._held.pop(table.name, None)
        else:
            self.hold(table.name, use, content.rows, content.bytes)
        return content


def whole_first(tables: Iterable[TableDef], uses: Mapping[str, TableUse]) -> list[TableDef]:
    """The tables in the order in which they are to be read."""
    return sorted(tables, key=lambda table: uses[table.name].whole is None)


def tables_shown(plan: Plan, limit: TableLimit) -> Iterator[str]:
    """The tables for people: where the rows are, how many, when which of them count, and how tasks
    come by them; reads them."""
    uses, room = table_uses(plan), TableRoom(limit)
    read = {t.name: _read(t, uses[t.name], room) for t in whole_first(plan.tables, uses)}
    for table in plan.tables:
        sources = ", ".join(map(shown, table.uris)) or "given as rows"
        if table.valid_from is not None:
            when = f"each row from its {table.valid_from} on, to the next of its key"
        elif table.refresh_us is not None:
            when = f"read again every {duration_text(table.refresh_us)}"
        else:
            when = "read once, when the query first starts"
        facts, how = read[table.name]
        yield f"{table.name}: {sources}, {facts}; {when}; {how}"


def _read(table: TableDef, use: TableUse, room: TableRoom) -> tuple[str, str]:
    most = size_text(use.most_bytes(room.left(table.name)))
    content = room.read(table, use)
    how = f"held by every task, because it needs at most {most} there"
    if isinstance(content, LargeTable):
        content = content.measured()
        keys = " and by ".join(", ".join(map(describe, key.values)) for key in use.keys)
        how = (
            f"read by {keys} from the checkpoint, because tasks would need more than {most} for it"
        )
    facts = f"{content.rows:,} rows, {content.bytes:,} bytes, version {content.digest[:12]}"
    return facts, how
