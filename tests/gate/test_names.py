"""The log of names beside the manifest: few pages, nothing lost, what is gone is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import StateError
from tidegate.gate.names import FEW_NAMES, ListedFile, NameLog
from tidegate.gate.orders import ConsumedOrders
from tidegate.state.store import Store


def noted(log: NameLog, first: int, names: int) -> None:
    for order in range(first, first + names):
        log.note(ListedFile(order, f"part-{order:05d}", 10, order * 7))


def test_few_names_stay_in_the_manifest(tmp_path: Path) -> None:
    log, store = NameLog(), Store.open(tmp_path)
    noted(log, 0, FEW_NAMES)
    log.write(store, "gate/a.arrow", lambda known: True)
    assert log.files == []
    assert len(log.saved()["recent"]) == FEW_NAMES
    assert len(NameLog(json.loads(json.dumps(log.saved()))).read(None)) == FEW_NAMES


def test_many_names_move_into_a_few_pages(tmp_path: Path) -> None:
    log, store = NameLog(), Store.open(tmp_path)
    batches, of_each = 200, FEW_NAMES + 1
    for batch in range(batches):
        noted(log, batch * of_each, of_each)
        log.write(store, f"gate/names-{batch:08d}.arrow", lambda known: True)
        assert log.saved()["recent"] == []
        assert len(log.files) <= batch.bit_length() + 1
    found = NameLog(json.loads(json.dumps(log.saved()))).read(store)
    assert [k.order for k in found.values()] == list(range(batches * of_each))
    assert found["part-00007"] == ListedFile(7, "part-00007", 10, 49)


def test_what_is_noted_last_counts(tmp_path: Path) -> None:
    """A file that grew has another extent; one that came again has another order."""
    log, store = NameLog(), Store.open(tmp_path)
    noted(log, 0, FEW_NAMES + 1)
    log.write(store, "gate/a.arrow", lambda known: True)
    log.note(ListedFile(3, "part-00003", 99))
    log.note(ListedFile(500, "part-00004", 10))
    assert log.read(store)["part-00003"].extent == 99
    noted(log, 1000, 2 * FEW_NAMES)
    log.write(store, "gate/b.arrow", lambda known: True)
    assert log.files == ["gate/b.arrow"]
    found = log.read(store)
    assert (found["part-00003"].extent, found["part-00004"].order) == (99, 500)


def test_names_that_are_not_needed_are_left_out_when_pages_are_merged(tmp_path: Path) -> None:
    log, store = NameLog(), Store.open(tmp_path)
    noted(log, 0, FEW_NAMES + 1)
    log.write(store, "gate/a.arrow", lambda known: True)
    noted(log, 100, FEW_NAMES + 1)
    log.write(store, "gate/b.arrow", lambda known: known.order >= 60)
    assert min(k.order for k in log.read(store).values()) == 60
    noted(log, 200, FEW_NAMES + 10)
    log.write(store, "gate/c.arrow", lambda known: False)
    assert log.saved() == {"recent": [], "pages": []}


def test_a_damaged_page_is_named(tmp_path: Path) -> None:
    log, store = NameLog(), Store.open(tmp_path)
    noted(log, 0, FEW_NAMES + 1)
    log.write(store, "gate/a.arrow", lambda known: True)
    data = bytearray(store.read("gate/a.arrow"))
    data[len(data) // 2] ^= 1
    store.write("gate/a.arrow", bytes(data))
    with pytest.raises(StateError, match=r"gate/a\.arrow: must be as it was written; got other"):
        log.read(store)


@given(st.permutations(range(40)), st.integers(0, 40))
def test_orders_are_a_set_of_few_ranges(order: list[int], count: int) -> None:
    orders = ConsumedOrders()
    for number in order[:count]:
        orders.add(number, number)
        again = ConsumedOrders(json.loads(json.dumps(orders.ranges())))
        assert again.ranges() == orders.ranges()
    added = set(order[:count])
    assert [n for n in range(-1, 45) if n in orders] == sorted(added)
    assert orders.watermark == min(set(range(45)) - added)
    gaps = sum(n - 1 not in added for n in added)
    assert len(orders.ranges()) == gaps


@given(st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=20))
def test_ranges_join_up(runs: list[tuple[int, bool]]) -> None:
    """Whether numbers come as ranges, as those of other folders do, or one by one."""
    orders, at = ConsumedOrders(), 0
    for rows, in_one in runs:
        if in_one:
            orders.add(at, at + rows - 1)
        else:
            for number in range(at, at + rows):
                orders.add(number, number)
        at += rows
    assert orders.ranges() == ([[0, at - 1]] if at else [])
