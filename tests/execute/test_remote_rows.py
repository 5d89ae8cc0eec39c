"""Rows in objects of a remote checkpoint: those of a table, read in part where a part is wanted."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from pyarrow.fs import _MockFileSystem

from tests.driver.scene import COUNTS, PASSED, plan_of, table
from tests.execute.test_delivery import values, windows
from tidegate.batch import MAX_US, MIN_US
from tidegate.collect.window import WindowOrder
from tidegate.execute import delivery as edge
from tidegate.execute import exchange, remote_rows
from tidegate.execute.delivery import Delivery
from tidegate.execute.job import Job, Outcome, Piece
from tidegate.execute.large_output import cuts_of
from tidegate.operate.port import Port
from tidegate.plan.physical import Subquery
from tidegate.route.mapping import even
from tidegate.state.store import Store

(SUBQUERY,) = plan_of(PASSED).subqueries
(PORT,) = SUBQUERY.ports
(COUNTED,) = plan_of(COUNTS).subqueries


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    """A remote one, for which a few rows are many."""
    monkeypatch.setattr(exchange, "LEAST_BYTES", 1_000)
    monkeypatch.setattr(remote_rows, "CHUNK_ROWS", 100)
    fs = _MockFileSystem()
    made = Store.open((fs, "ckpt"))
    made.create({})
    return made


def job_on(store: Store, subquery: Subquery = SUBQUERY) -> Job:
    return Job(3, subquery, (), even(4, 2), MIN_US, MAX_US, {}, store.handle())


def many(count: int) -> pa.Table:
    return table(*[(i, "k", i) for i in range(count)])


def left(store: Store, rows: pa.Table, port: Port = PORT, subquery: Subquery = SUBQUERY) -> Piece:
    outcome = Outcome(1, (Piece.of(port, rows),))
    return exchange.store_apart(job_on(store, subquery), outcome).pieces[0]


def test_an_outcome_of_many_rows_is_small_and_has_them_all(store: Store) -> None:
    rows = many(10_000)
    piece = pickle.loads(pickle.dumps(left(store, rows)))
    assert piece.remote is not None
    assert len(pickle.dumps(piece)) < 20_000
    assert (piece.count, piece.low_us, piece.high_us) == (10_000, 0, 9_999_000_000)
    assert piece.load().equals(rows)


def test_few_rows_stay_with_the_outcome(store: Store) -> None:
    assert left(store, many(3)).remote is None


def test_of_a_span_only_its_chunks_are_read(store: Store) -> None:
    piece = left(store, many(1_000))
    assert piece.remote is not None
    for name in piece.remote.names()[:4] + piece.remote.names()[6:]:
        store.delete(name)
    assert piece.load(400_000_000, 600_000_000).equals(many(1_000).slice(400, 200))
    assert piece.load(MAX_US - 1, MAX_US).equals(many(0))


def test_edges_have_the_same_rows_from_there(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the time of a row is not the value in its column."""
    monkeypatch.setattr(edge, "SPAN_ROWS", 70)
    (port,) = COUNTED.ports
    tables = [windows(*[(t, k, t) for t in range(300)]) for k in "ab"]
    here = Delivery("", WindowOrder(), port, tuple(Piece.of(port, t) for t in tables))
    there = Delivery("", WindowOrder(), port, tuple(left(store, t, port, COUNTED) for t in tables))
    assert all(p.remote is not None for p in there.pieces)
    found = [values(reader) for reader in there.readers()]
    assert found == [values(reader) for reader in here.readers()]
    assert len(found) == 9


def test_parts_of_an_output_are_chosen_without_reading_it(store: Store) -> None:
    piece = left(store, many(1_000))
    assert piece.remote is not None
    for name in piece.remote.names():
        store.delete(name)
    first, second = cuts_of(job_on(store), [Outcome(0, (piece,))], 3)
    assert first == pytest.approx(333e6, rel=0.05)
    assert second == pytest.approx(666e6, rel=0.05)
