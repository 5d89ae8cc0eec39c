"""Why a row is in an output: its input tuples, and the run over them that gives the row again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.errors import StateError
from tidegate.query.clause.column import EXACT
from tidegate.query.clause.shed import UNIFORM, Shed
from tidegate.query.node.graph import bottom_up
from tidegate.query.node.join import Join
from tidegate.query.node.limit import Limit
from tidegate.query.node.node import Node, Top
from tidegate.query.node.over import Lead, Over
from tidegate.query.node.table_join import TableJoin
from tidegate.query.trace import WHY, UntracedError, table_rows, traced, traced_tables
from tidegate.session.why.frame import of_frames
from tidegate.session.why.origin import TupleId, ids_of
from tidegate.session.why.partner import of_partners
from tidegate.session.why.reduce import reduced
from tidegate.session.why.rewrite import rewritten
from tidegate.session.why.runs import StreamTuples, TracedQuery, with_ids
from tidegate.session.why.span import TupleSpan
from tidegate.sink.digest.digest import row_hashes

MOST_TUPLES = 100_000
"""Among so many tuples, at most, those of a row are looked for that the query does not tell of."""

MOST_TRIES = 300
"""How often the query is run again, at most, to leave tuples out."""


_BESIDE: Mapping[type[Node], Callable[..., set[TupleId]]] = {
    Join: of_partners,
    Over: of_frames,
    Lead: of_frames,
}
"""What finds tuples of rows that a node passes on without showing them, by the kind of the node."""


@dataclass(frozen=True)
class WhyTuple:
    """An input tuple of a row: where it stands, its event time and its values."""

    stream: str
    place: Mapping[str, Any]
    ts_us: int
    values: pa.Table


@dataclass(frozen=True)
class WhyTableRow:
    """A row of a table that a tuple was joined to: its number from 0 on, and its values."""

    table: str
    row: int
    values: pa.Table


@dataclass(frozen=True)
class Explanation:
    """The tuples that a row was made of, and the rows of tables that they were joined to.

    The query was run again over `tuples_again` of the tuples, or over more that `notes` tell of,
    and gave `rows_again` rows, of which one is this row. It read the tables whole.
    """

    row: int
    values: pa.Table
    tuples: tuple[WhyTuple, ...]
    table_rows: tuple[WhyTableRow, ...]
    tuples_again: int
    rows_again: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """A row of an output by its number, from 0 on, and its values.

    `nth` is how many equal rows come before it, where other rows may not come again as they were.
    """

    number: int
    values: pa.Table
    nth: int | None = None


def explained(runs: TracedQuery, wanted: Wanted) -> Explanation:
    """The tuples of a row. Reads the sources up to the row, some times over.

    Memory is bounded by the tuples of the row, and by MOST_TUPLES where the query does not tell
    which they are.
    """
    return _Search(runs, wanted).explanation()


class _Search:
    def __init__(self, runs: TracedQuery, wanted: Wanted) -> None:
        self._runs, self._wanted = runs, wanted
        self._span = TupleSpan.of_row(runs.node, wanted.values)
        self._hash = hashes(wanted.values)[0]
        self._again, self._unlimited = _without_limits(runs.node)
        self._rows_again = self._tuples_again = 0
        self._table_rows: set[TupleId] = set()
        self._notes: list[str] = []
        self._notes += _notes(runs.node, wanted.values)
        if self._unlimited:
            self._notes.append(
                "LIMIT and rank depend on other rows: the query was run again without them"
            )

    def explanation(self) -> Explanation:
        ids = self._told()
        tuples = self._fetched(with_ids(ids), {i.source for i in ids})
        if ids and self._gives_row(tuples, ids):
            return self._found(tuples, ids)
        wide = self._fetched(self._at_most(), None)
        every = {i for of in wide.values() for i in of.ids}
        again = self._gives_row(wide, every)
        if not again and self._span != TupleSpan():
            self._span = TupleSpan()  # rows of outer joins come later than the time they show
            return self.explanation()
        if not again:
            raise self._changed()
        if any(clause.sheds for part in bottom_up([self._runs.node]) for clause in _clauses(part)):
            self._notes.append(
                f"shed: these {len(ids):,} tuples were used; what share they are depends on others,"
                f" so the query was run again over all {len(every):,} of their time"
            )
            return self._found(wide, ids)
        return self._found(wide, self._reduced(wide, ids, every))

    def _told(self) -> set[TupleId]:
        """The tuples that the query itself tells of."""
        try:
            found = traced(self._runs.node)
        except UntracedError:
            return set()
        ids = self._of_row(found[id(self._runs.node)][0])
        for node in reversed(list(bottom_up([self._runs.node]))):
            more = _BESIDE.get(type(node))
            if more is not None:
                ids = ids | more(self._runs, node, found, ids, self._span)
        self._table_rows = {i for i in ids if i.source < 0}
        return ids - self._table_rows

    def _of_row(self, node: Node) -> set[TupleId]:
        low_us, wanted = self._span.low_us, self._wanted
        runs = partial(self._runs.traced_rows, node, low_us)
        if wanted.nth is None:
            row = row_at(runs, wanted.number)
        else:
            row = row_at(lambda seen: runs(lambda rows: seen(self._equal(rows))), wanted.nth)
        if row is None or not self._equal(row).num_rows:
            raise self._changed()
        names = [name for name in row.column_names if WHY in name]
        return ids_of(text for name in names for text in row.column(name).to_pylist())

    def _changed(self) -> StateError:
        """What to say where the query does not give a row again that was committed."""
        return StateError(
            f"row {self._wanted.number:,}",
            "must come again when the query is run from its sources",
            "another row",
            self._remedy(),
        )

    def _remedy(self) -> str:
        tables = ", ".join(_read_again(self._runs.node))
        idle = ", ".join(s.name for s in self._runs.origins.streams if s.idle_us is not None)
        if tables:
            return (
                f"Table {tables} changed within the time of this row, or its rows of then are not "
                "kept."
            )
        if idle and not self._runs.origins.late:
            return (
                f"IDLE of stream {idle} let this row go out without tuples that came later, and no "
                "file in `_late` says which they are. Take a row whose sources were not silent; "
                "`tidegate verify` repeats what was decided, and says whether input or code has "
                "changed."
            )
        return "Output, input or code has changed: `tidegate verify` says which."

    def _equal(self, rows: pa.Table) -> pa.Table:
        """The rows that are the wanted one, but for their ids."""
        own = rows.select([name for name in rows.column_names if WHY not in name])
        return rows.filter(pa.array(hashes(own) == self._hash))

    def _fetched(
        self, keep: Callable[[pa.Table], pa.Table], sources: Collection[int] | None
    ) -> dict[int, StreamTuples]:
        """The tuples by stream; of all sources, or of those alone."""
        origins = self._runs.origins
        numbers = (
            range(len(origins.streams))
            if sources is None
            else sorted({origins.sources[source][0].stream for source in sources})
        )
        return {
            n: self._runs.tuples(n, keep, self._span)
            for n in numbers
            if origins.streams.index(origins.streams[n]) == n
        }

    def _at_most(self) -> Callable[[pa.Table], pa.Table]:
        """What keeps all tuples, and refuses too many of them."""
        held = 0

        def keep(rows: pa.Table) -> pa.Table:
            nonlocal held
            held += rows.num_rows
            if held > MOST_TUPLES:
                raise StateError(
                    f"row {self._wanted.number:,}",
                    f"must depend on at most {MOST_TUPLES:,} tuples where the query does not tell "
                    "which they are",
                    "more of them before it",
                    "Take an earlier row, or run the query over a shorter time.",
                )
            return rows

        return keep

    def _gives_row(self, tuples: Mapping[int, StreamTuples], ids: Collection[TupleId]) -> bool:
        """Whether the query gives the row over these tuples alone."""
        parts = self._runs.again(self._again, tuples, ids)
        made = np.concatenate([hashes(part) for part in parts] or [np.zeros(0, np.uint64)])
        self._rows_again, self._tuples_again = len(made), len(ids)
        return bool(np.any(made == self._hash))

    def _reduced(
        self, tuples: Mapping[int, StreamTuples], told: set[TupleId], every: set[TupleId]
    ) -> set[TupleId]:
        """Some of the tuples that are enough, those that the query tells of among them."""
        times = {
            i: t for of in tuples.values() for i, t in zip(of.ids, of.times.tolist(), strict=True)
        }
        others = sorted(every - told, key=lambda i: (times[i], i))
        left, sure = reduced(
            others, lambda some: self._gives_row(tuples, {*told, *some}), MOST_TRIES
        )
        self._notes.append(
            f"found by trial: the query does not tell of {len(left):,} of these, and leaving out "
            "any one of them gives another row"
            if sure
            else f"found by trial: after {MOST_TRIES} runs, some of these may not be needed"
        )
        ids = {*told, *left}
        assert self._gives_row(tuples, ids)
        return ids

    def _found(self, tuples: Mapping[int, StreamTuples], ids: Collection[TupleId]) -> Explanation:
        found: list[tuple[int, int, WhyTuple]] = []
        origins = self._runs.origins
        for number, of in tuples.items():
            for place, (each, time) in enumerate(zip(of.ids, of.times.tolist(), strict=True)):
                if each in ids:
                    _, source, name = origins.sources[each.source]
                    where = (
                        {"source": name, "position": each.position}
                        if source is None
                        else source.place_of(each.position)
                    )
                    stream = origins.streams[number].name
                    made = WhyTuple(stream, where, time, of.table.slice(place, 1))
                    found.append((time, number, made))
        found.sort(key=lambda one: one[:2])
        return Explanation(
            self._wanted.number,
            self._wanted.values,
            tuple(made for _, _, made in found),
            tuple(self._of_tables()),
            self._tuples_again,
            self._rows_again,
            tuple(self._notes),
        )

    def _of_tables(self) -> Iterator[WhyTableRow]:
        """The rows of tables, in the order of the tables and of their rows; reads them once."""
        for place, table in enumerate(traced_tables(self._runs.node)):
            numbers = sorted(i.position for i in self._table_rows if i.source == -1 - place)
            if numbers:
                rows = table_rows(table)
                yield from (WhyTableRow(table.name, n, rows.slice(n, 1)) for n in numbers)


def row_at(run: Callable[[Callable[[pa.Table], bool]], None], number: int) -> pa.Table | None:
    """The row with a number of a run, as a table; None if the run gives fewer."""
    before = 0
    found: list[pa.Table] = []

    def seen(rows: pa.Table) -> bool:
        nonlocal before
        if not found and number < before + rows.num_rows:
            found.append(rows.slice(number - before, 1))
        before += rows.num_rows
        return bool(found)

    run(seen)
    return found[0] if found else None


def hashes(rows: pa.Table) -> Any:
    """What each row is by its values, as digests count it."""
    found = [row_hashes(batch) for batch in rows.to_batches()]
    return np.concatenate(found) if found else np.zeros(0, np.uint64)


def _notes(root: Node, row: pa.Table) -> list[str]:
    """What tuples of streams do not say of a row."""
    tables = {node.table.name: None for node in bottom_up([root]) if isinstance(node, TableJoin)}
    found = [f"table {name} was read whole, in each run" for name in tables]
    found += [
        f"table {name} was read as it is now: it changed in the time of this row, or its rows of "
        "then are not kept as a whole"
        for name in _read_again(root)
    ]
    clauses = [clause for part in bottom_up([root]) for clause in _clauses(part)]
    if any(isinstance(clause, Shed) and clause.by == UNIFORM for clause in clauses):
        found.append(
            "shed: which tuples were used follows from their positions in the sources; they were "
            "run again at these, and in a file of these tuples alone others would be dropped"
        )
    if EXACT in row.column_names and row.column(EXACT)[0].as_py() is False:
        found.append("within an error: the answer was estimated from a sample of these tuples")
    return found


def _read_again(root: Node) -> list[str]:
    """The names of tables of which not the rows of the time are read, but those of now."""
    joins = (node for node in bottom_up([root]) if isinstance(node, TableJoin))
    return sorted({join.table.name for join in joins if join.table.refresh_us is not None})


def _clauses(node: Node) -> Sequence[Any]:
    return getattr(node, "clauses", ())


def _without_limits(root: Node) -> tuple[Node, bool]:
    """The query without LIMIT and ranks, and whether there were any."""
    made = rewritten(root, lambda node, children: children[0] if _is_limit(node) else None)
    return made, made is not root


def _is_limit(node: Node) -> bool:
    if isinstance(node, Top):
        return node.limit is not None or node.ranked is not None
    return isinstance(node, Limit)
