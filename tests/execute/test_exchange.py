"""Outcomes and parcels as files of one batch."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.driver.scene import PASSED, plan_of, table
from tidegate.batch import MAX_US, MIN_US
from tidegate.errors import StateError
from tidegate.execute import exchange
from tidegate.execute.job import LATE, ROWS, Job, Outcome, Parcel, Piece
from tidegate.route.mapping import even
from tidegate.route.partitioner import EVERY_INSTANCE
from tidegate.state.store import Store

(SUBQUERY,) = plan_of(PASSED).subqueries
(PORT,) = SUBQUERY.ports


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    store = Store.open(tmp_path)
    made = Job(3, SUBQUERY, (), even(4, 2), MIN_US, MAX_US, {}, store.handle())
    exchange.begin(made)
    yield made
    exchange.clear(made)
    assert not (tmp_path / exchange.FOLDER).exists()


def many(count: int) -> pa.Table:
    return table(*[(i, "k", i) for i in range(count)])


def test_an_outcome_whose_rows_are_elsewhere_is_small(job: Job) -> None:
    """A slice of a table pickles all of its memory; what stays must not."""
    rows = many(10_000)
    left = exchange.store_rows(job, Outcome(0, (Piece.of(PORT, rows),)))
    (piece,) = left.pieces
    assert piece.table is None
    assert len(pickle.dumps(left)) < 2_000
    assert (piece.count, piece.low_us, piece.high_us) == (10_000, 0, 9_999_000_000)
    assert piece.load().equals(rows)


def test_few_rows_stay_where_they_are_and_ports_do_not_share_a_file(job: Job) -> None:
    tables = [many(3), many(10_000), many(20_000)]
    outcome = Outcome(1, tuple(Piece.of(PORT, t) for t in tables))
    left = exchange.store_rows(job, outcome)
    assert [p.table is None for p in left.pieces] == [False, True, True]
    assert [p.load().num_rows for p in left.pieces] == [3, 10_000, 20_000]
    assert (left.rows, left.instance) == (30_003, 1)


@pytest.mark.parametrize(("instances", "inline"), [(2, True), (4, False), (999, False)])
def test_instances_on_other_hosts_send_the_driver_as_much_together_however_many_they_are(
    instances: int, inline: bool, job: Job
) -> None:
    rows = many(70_000)
    assert 4 << 20 > 2 * rows.nbytes > 2 << 20
    wide = replace(job, mapping=even(1_000, instances))
    (piece,) = exchange.store_apart(wide, Outcome(1, (Piece.of(PORT, rows),))).pieces
    assert (piece.path is None) == inline
    assert piece.load().equals(rows)
    few = exchange.store_apart(wide, Outcome(0, (Piece.of(PORT, many(3)),)))
    assert few.pieces[0].path is None
    exchange.clear(wide)


def test_the_rows_of_two_instances_are_apart(job: Job) -> None:
    tables = [many(10_000), many(20_000)]
    left = [
        exchange.store_rows(job, Outcome(i, (Piece.of(PORT, t),))) for i, t in enumerate(tables)
    ]
    assert [o.pieces[0].load().num_rows for o in left] == [10_000, 20_000]


def test_an_instance_receives_its_parcels_and_those_for_all(job: Job) -> None:
    parcels = [
        Parcel(0, 7, ROWS, b"zero"),
        Parcel(1, 7, ROWS, b"one"),
        Parcel(EVERY_INSTANCE, 7, ROWS, b"all"),
        Parcel(1, 7, LATE, b"", "s"),
    ]
    shipment = exchange.ship(job, "map-7", parcels)
    assert [bytes(p.data) for p in exchange.receive([shipment], 0)] == [b"zero", b"all"]
    mine = exchange.receive([shipment], 1)
    assert [(bytes(p.data), p.kind, p.label) for p in mine] == [
        (b"one", ROWS, ""),
        (b"all", ROWS, ""),
        (b"", LATE, "s"),
    ]


def test_what_was_left_for_tasks_is_opened_only_as_it_was_written(job: Job) -> None:
    left = exchange.leave(job, "job", b"code")
    assert exchange.LeftFile.of(str(left)) == left
    assert left.open().to_pybytes() == b"code"
    Path(left.path).write_bytes(b"c0de")
    with pytest.raises(StateError, match="must be as the driver left it; got other bytes"):
        left.open()


def test_what_a_piece_says_of_no_rows() -> None:
    piece = Piece.of(PORT, table())
    assert (piece.count, piece.load().num_rows) == (0, 0)


def test_a_piece_is_in_the_time_of_its_port(job: Job) -> None:
    (port,) = plan_of("SELECT COUNT(*) AS n FROM s [RANGE 10 SECONDS]").subqueries[0].ports
    ends = pa.array(np.array([10, 20, 20]) * 1_000_000).cast(pa.timestamp("us", "UTC"))
    piece = Piece.of(port, pa.table({"window_start": ends, "window_end": ends}))
    assert (piece.low_us, piece.high_us) == (9_999_999, 19_999_999), "the last instant inside"
