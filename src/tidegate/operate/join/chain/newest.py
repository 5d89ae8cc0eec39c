"""Puts the new tuples of a side and the newest run of its chain under one index.

A small batch then searches one run instead of two, and the next batch finds that run in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.batch import ORDER, TS, ints
from tidegate.errors import TaskError
from tidegate.operate.join.chain.chain import BUCKET, ChainRun
from tidegate.operate.join.chain.run_index import Ints, Terms
from tidegate.operate.join.predicate.bound import value_of
from tidegate.operate.join.search import News
from tidegate.operate.join.spec import JoinSpec


@dataclass(frozen=True)
class Newest:
    """A table of `behind` stored tuples and then all new ones, in the total order.

    `rows` are the tuples that are searched here; `coordinate`, `place` and `terms` have an entry
    for each. A stored tuple has place -1. `terms` is None where a value cannot be computed.
    """

    table: pa.Table
    behind: int
    rows: Ints
    coordinate: Ints
    place: Ints
    terms: tuple[Terms, ...] | None

    def stored(self, kept: np.ndarray[tuple[int], np.dtype[np.bool_]], since: int) -> ChainRun:
        """Some of the searched tuples as a run, which owns its memory."""
        assert self.terms is not None
        chosen = np.flatnonzero(kept)
        return ChainRun(
            self.table.take(pa.array(self.rows[chosen])),
            self.coordinate[chosen],
            tuple(t.take(chosen) for t in self.terms),
            since,
        )


def newest_of(
    spec: JoinSpec, side: int, news: News, behind: ChainRun | None = None, asked: bool = True
) -> Newest:
    """The new tuples of a side, after a run of stored ones if one is given.

    A value that cannot be computed is a TaskError, except where no tuple has `asked` for it, and in
    a union of indexes: there the predicate may never look at it.
    """
    rows = np.flatnonzero(news.held)
    place = news.place[rows]
    counts = spec.side(side).extent.rows is not None
    coordinate = news.ranks[rows] if counts else ints(news.table, TS)[rows]
    names = [*ORDER, BUCKET, *(name for name, _ in spec.side(side).columns)]
    table = news.table.select(names)
    try:
        terms = _terms(spec, side, news, rows)
    except TaskError:
        if asked and not spec.branches:
            raise
        terms = None
    if behind is None or terms is None:
        return Newest(table, 0, rows, coordinate, place, terms)
    both = zip(behind.terms, terms, strict=True)
    return Newest(
        pa.concat_tables([behind.table, table]).combine_chunks(),
        behind.rows,
        np.concatenate([np.arange(behind.rows), rows + behind.rows]),
        np.concatenate([behind.coordinate, coordinate]),
        np.concatenate([np.full(behind.rows, -1, np.int64), place]),
        tuple(one.followed_by(two) for one, two in both),
    )


def _terms(spec: JoinSpec, side: int, news: News, rows: Ints) -> tuple[Terms, ...]:
    """The terms of each probe for the new tuples that are searched."""
    whole = len(rows) == news.table.num_rows
    held = None
    found = []
    for probe in spec.probes:
        key = order = None
        if probe.index is not None:
            key = news.key(probe, side)
            order = news.key_order(probe, side) if whole else None
            key = key if whole else key[rows]
        tests = probe.tests
        if tests and held is None:
            held = news.table if whole else news.table.take(pa.array(rows))
        found.append(Terms(key, tuple(value_of(i, side, held) for i in tests), order))
    return tuple(found)
