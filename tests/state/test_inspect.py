"""What `tidegate state` shows, and what it says of places that are not checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.state.mapping import mappings
from tests.state.rows import rows
from tidegate.batch import MAX_US, MIN_US
from tidegate.errors import CheckpointError, StateError
from tidegate.state.inspect import describe, frontier_text, inspect, size_text
from tidegate.state.manifest import Manifest
from tidegate.state.segment.segment import write_segment
from tidegate.state.store import Store

OTHER = {"epoch": 0, "instances": 1, "owners": [0] * 8}


@pytest.fixture
def filled(store: Store) -> Store:
    first = write_segment(store, "00000000-0000", rows([(0, 0, 1), (2, 1, 1)]), "pane", 0)
    second = write_segment(store, "00000001-0000", rows([(2, 1, 1)]), "pane", 0)
    base = Manifest(0, mappings(*[0] * 8), MIN_US, operators={"aggregate/panes": (first,)})
    store.publish(base)
    store.publish(
        Manifest(
            batch=1,
            mappings={**mappings(0, 1, 1, 0, 1, 1, 1, 0, epoch=1), "join": OTHER},
            frontier_us=1_700_000_000_500_000,
            sources=({"id": "rides.parquet", "position": 42, "floor_us": 1_000_000},),
            operators={"aggregate/panes": (first, second)},
            counters={"rows_in": 42},
            policy={"kind": "fixed"},
            epochs=({"subquery": "aggregate", "epoch": 1, "batch": 1},),
        )
    )
    store.write("segment/00000002-0000.arrow", b"left over")
    return store


def test_the_facts(filled: Store) -> None:
    facts = inspect(filled)
    state = facts["state"]
    assert facts["meta"] == {"fingerprint": "f00d", "buckets": 8}
    assert facts["manifests"] == [0, 1]
    assert (state["batch"], state["buckets"]) == (1, 8)
    assert state["subqueries"] == {
        "aggregate": {"epoch": 1, "instances": 2, "mapping": {"0": 3, "1": 5}},
        "join": {"epoch": 0, "instances": 1, "mapping": {"0": 8}},
    }
    assert state["operators"]["aggregate/panes"]["segments"] == 2
    assert state["operators"]["aggregate/panes"]["rows"] == 3
    assert state["operators"]["aggregate/panes"]["buckets"] == 2
    assert facts["unreferenced"] == [{"name": "segment/00000002-0000.arrow", "bytes": 9}]
    assert facts["verified"] is None
    assert json.loads(json.dumps(facts)) == facts


def test_the_text(filled: Store) -> None:
    text = describe(filled, verify=True)
    for line in (
        f"checkpoint {filled.location}",
        "  fingerprint: f00d",
        "batch 1",
        "subquery aggregate: epoch 1, 2 instances, 8 buckets",
        "  instance 1: 5 buckets",
        "subquery join: epoch 0, 1 instance, 8 buckets",
        "  instance 0: 8 buckets",
        "frontier 2023-11-14 22:13:20.500000 UTC",
        "  id rides.parquet, floor 1970-01-01 00:00:01 UTC, position 42",
        "  rows_in: 42",
        "  kind: fixed",
        "  epoch 1, batch 1, subquery aggregate",
        "  segment/00000002-0000.arrow 9 B",
        "files that nothing refers to: 1, 9 B (the next start removes them)",
    ):
        assert line in text.splitlines()
    assert "state aggregate/panes: 2 segments, 3 rows, " in text
    assert "2 segments, " in text
    assert text.endswith("checked: all are whole")


def test_a_fact_of_several_lines_is_one_line(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    store.create({"schema": "route: string\nn: int64"})
    assert "  schema: route: string, n: int64" in describe(store).splitlines()


def test_inspecting_changes_nothing(filled: Store) -> None:
    before = [(e.name, e.bytes) for f in ("", "segment", "manifest") for e in filled.files.list(f)]
    describe(filled, verify=True)
    after = [(e.name, e.bytes) for f in ("", "segment", "manifest") for e in filled.files.list(f)]
    assert before == after


def test_damage_is_listed_file_by_file(filled: Store) -> None:
    inspect(filled, verify=True)
    path = "segment/00000001-0000.arrow"
    data = bytearray(filled.read(path))
    data[100] ^= 4
    filled.write(path, bytes(data))
    problems = inspect(filled, verify=True)["verified"]["problems"]
    assert len(problems) == 1
    assert problems[0].startswith(filled.files.full(path))
    assert "1 damaged" in describe(filled, verify=True)


def test_a_damaged_manifest_is_an_error(filled: Store) -> None:
    filled.write("manifest/00000001.json", b"{}")
    with pytest.raises(StateError, match=r"00000001\.json: must be as it was written"):
        describe(filled)


def test_before_the_first_batch(store: Store) -> None:
    assert inspect(store)["state"] is None
    assert "no batch is committed yet" in describe(store)
    assert "every file is referred to" in describe(store)


def test_a_finished_run(store: Store) -> None:
    store.publish(Manifest(7, mappings(0), MAX_US, finished=True))
    lines = describe(store).splitlines()
    assert "batch 7, the run has finished" in lines
    assert "frontier +inf" in lines


def test_another_folder(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError) as caught:
        describe(Store.open(str(tmp_path)))
    assert str(caught.value) == (
        f"{tmp_path}: must be a Tidegate checkpoint; got a folder without meta.json. "
        "Give the folder that a run had as --checkpoint."
    )
    with pytest.raises(CheckpointError, match="got no such folder"):
        describe(Store.open(str(tmp_path / "nowhere")))


@pytest.mark.parametrize(
    ("frontier_us", "text"),
    [
        (MIN_US, "-inf"),
        (MAX_US, "+inf"),
        (0, "1970-01-01 00:00:00 UTC"),
        (-1, "1969-12-31 23:59:59.999999 UTC"),
        (2**62, f"{2**62} us"),
    ],
)
def test_a_frontier_as_time(frontier_us: int, text: str) -> None:
    assert frontier_text(frontier_us) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (5 * 2**20, "5.0 MiB"),
        (679_000, "663 KiB"),
        (2**50, "1,024 TiB"),
    ],
)
def test_a_size_for_people(size: int, text: str) -> None:
    assert size_text(size) == text
