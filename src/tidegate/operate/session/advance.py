"""Adds pieces to open sessions, and ends the sessions that no later tuple can extend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US, ints
from tidegate.operate.aggregate.function import states_in
from tidegate.operate.kernels.group import Groups, dense, pack, rank, rank_integers
from tidegate.operate.kernels.order import Ints, Mask, flat
from tidegate.operate.session.piece import cut, grouped, merged
from tidegate.operate.session.spec import BATCH, LAST, LIVE, START, WHOLE, SessionSpec
from tidegate.schema import TIME


@dataclass(frozen=True)
class SessionTurn:
    """What a batch makes of the sessions of an instance.

    `results` are the sessions that have ended, in the order of the output. `opened` are the open
    ones, for memory. `stored` are the rows to write.
    """

    results: pa.Table
    opened: pa.Table
    stored: pa.Table


def advance(
    spec: SessionSpec, opened: pa.Table, pieces: pa.Table, *, frontier_us: int, batch: int
) -> SessionTurn:
    """Add the pieces of a batch, in any order; their tuples must be later than all stored ones.

    Costs O(open sessions) for their keys, and O(pieces) for states.

    A batch stores one row for each session that it extends. A row lives as long as the session
    would have lived without later tuples. So no row needs a tombstone: the rows of an ended session
    die by themselves. A session that outlives one of its rows is stored as a whole, as one row.
    That happens at most twice within a gap of event time, because tuples of that whole gap must
    have come in between.
    """
    # Three kinds of sessions, in this order in `after`: not touched, grown, and new ones.
    news, place = _news(spec, opened, pieces)
    known = place >= 0
    again, rest = opened.take(pa.array(place[known])), np.ones(opened.num_rows, np.bool_)
    rest[place[known]] = False
    grown = _grown(spec, again, news.filter(pa.array(known)))
    fresh = _with_live(spec, news.filter(pa.array(~known)), None)
    after = pa.concat_tables([opened.filter(pa.array(rest)), grown, fresh])
    ended, outlived = (_before(spec, after, name, frontier_us) for name in (LAST, LIVE))
    is_grown = slice(int(rest.sum()), after.num_rows - fresh.num_rows)
    whole = outlived.copy()
    whole[is_grown.stop :] = True  # a new session has no other row
    part = ~(ended | outlived)[is_grown]
    after = _with_live(spec, after, np.where(whole, ints(after, LAST), ints(after, LIVE)))
    parts = _with_live(spec, news.filter(pa.array(known)).filter(pa.array(part)), None)
    stored = [_stored(spec, after.filter(pa.array(whole & ~ended)), batch, whole=True)]
    stored.append(_stored(spec, parts, batch, whole=False))
    return SessionTurn(
        results=_results(spec, after.filter(pa.array(ended))),
        opened=after.filter(pa.array(~ended)),
        stored=pa.concat_tables(stored),
    )


def together(spec: SessionSpec, rows: pa.Table) -> pa.Table:
    """Rebuild open sessions from stored rows in any order; a whole row replaces earlier ones."""
    if not rows.num_rows:
        return spec.open_schema.empty_table()
    by_key, batch = grouped(spec, [rows]), ints(rows, BATCH)
    groups = dense(pack([by_key.ranked, rank_integers(ints(rows, START))], rows.num_rows))
    since = np.full(groups.n, MIN_US)
    whole = flat(rows.column(WHOLE)).to_numpy(zero_copy_only=False)
    np.maximum.at(since, groups.codes[whole], batch[whole])
    used = np.flatnonzero(batch >= since[groups.codes])
    used = used[np.argsort(batch[used], kind="stable")]
    numbers, rows = groups.codes[used], rows.take(pa.array(used))
    live, last = np.full(groups.n, MAX_US), np.full(groups.n, MIN_US)
    np.minimum.at(live, numbers, ints(rows, LIVE))
    np.maximum.at(last, numbers, ints(rows, LAST))
    start = ints(rows, START)[Groups(numbers, groups.n).rows]
    return _with_live(spec, merged(spec, rows, Groups(numbers, groups.n), start, last), live)


def needed_from(spec: SessionSpec, frontier_us: int) -> int:
    """A session whose last tuple is before this time can get no more tuples."""
    return frontier_us if frontier_us in (MIN_US, MAX_US) else frontier_us - spec.gap_us


def _news(spec: SessionSpec, opened: pa.Table, pieces: pa.Table) -> tuple[pa.Table, Ints]:
    """One row for each session that the batch extends or begins, with the states of its new tuples.

    The times of a row are those of the whole session. The second value has the open session of each
    row, or -1 for a new session.
    """
    tables = opened, pieces
    first, last = (np.concatenate([ints(t, name) for t in tables]) for name in (START, LAST))
    found = cut(spec, grouped(spec, tables), first, last)
    old, new = np.split(found.numbers, [opened.num_rows])
    places = np.full(len(found.starts), -1, np.int64)
    places[old] = np.arange(len(old))
    touched = np.zeros(len(places), np.bool_)
    touched[new] = True
    groups = Groups((np.cumsum(touched) - 1)[new], int(touched.sum()))
    made = merged(spec, pieces, groups, found.starts[touched], found.lasts[touched])
    return made, places[touched]


def _grown(spec: SessionSpec, opened: pa.Table, news: pa.Table) -> pa.Table:
    """Merge each open session with what the batch adds to it."""
    groups = Groups(np.tile(np.arange(news.num_rows), 2), news.num_rows)
    names = spec.piece_schema.names
    both = pa.concat_tables([opened.select(names), news])
    made = merged(spec, both, groups, ints(opened, START), ints(news, LAST))
    return _with_live(spec, made, ints(opened, LIVE))


def _before(spec: SessionSpec, rows: pa.Table, name: str, frontier_us: int) -> Mask:
    found: Mask = ints(rows, name) < needed_from(spec, frontier_us)
    return found


def _with_live(spec: SessionSpec, rows: pa.Table, live: Ints | None) -> pa.Table:
    """Set how long rows live; None: as long as without later tuples."""
    live = ints(rows, LAST) if live is None else live
    columns = [rows.column(name) for name in spec.piece_schema.names]
    return pa.Table.from_arrays([*columns, pa.array(live)], schema=spec.open_schema)


def _stored(spec: SessionSpec, rows: pa.Table, batch: int, *, whole: bool) -> pa.Table:
    added = [pa.array(np.full(rows.num_rows, batch)), pa.array(np.full(rows.num_rows, whole))]
    return pa.Table.from_arrays([*rows.columns, *added], schema=spec.state_schema)


def _results(spec: SessionSpec, ended: pa.Table) -> pa.Table:
    """Ended sessions as rows, sorted by their ends and keys."""
    end = ints(ended, LAST) + spec.gap_us
    keys = [flat(ended.column(name)) for name, _ in spec.keys]
    ranks = [rank_integers(end), *map(rank, keys)]
    order = dense(pack(ranks, ended.num_rows)).order
    ended, end = ended.take(pa.array(order)), end[order]
    columns = [pa.array(ints(ended, START)).view(TIME), pa.array(end).view(TIME)]
    columns += [ended.column(name) for name, _ in spec.keys]
    pairs = zip(spec.functions, states_in(spec.functions, ended), strict=True)
    columns += [function.family.finish(states) for function, states in pairs]
    return pa.Table.from_arrays(columns, schema=spec.result_schema)
