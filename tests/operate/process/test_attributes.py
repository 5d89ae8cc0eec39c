"""What is written of an object's attributes, and read of them: no more than was used."""

from __future__ import annotations

import json
import math
from collections import Counter, OrderedDict, defaultdict
from datetime import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.operate.process.bucket import Bucket
from tidegate.operate.layered_state import HIDES
from tidegate.operate.process.advance import Process
from tidegate.operate.process.attributes import MappingHead
from tidegate.operate.process.entry import HEAD, StateRow
from tidegate.operate.process.object_state import ObjectState
from tidegate.operate.process.plain import NotPlain
from tidegate.operate.process.stored import StoredBucket, StoredState

EVERY: frozenset[str] = frozenset()
"""All mappings are read as they are asked."""


def written(rows: list[StateRow]) -> list[str]:
    """Heads, entries and entries that are gone, by name."""
    return sorted(
        "head" if row.entry == HEAD else f"{'gone ' * (row.entry >= HIDES)}{row.name.decode()}"
        for row in rows
    )


@pytest.mark.parametrize("whole", [EVERY, None], ids=["asked", "whole"])
def test_a_batch_writes_what_it_changed(whole: frozenset[str] | None) -> None:
    bucket = Bucket({"n": 0, "x": {i: [i] for i in range(5)}, "y": Counter("aab")})
    assert len(bucket.commit()) == 1 + 5 + 2
    x = bucket.restore(whole)["x"]
    assert written(bucket.commit()) == [], "nothing was used"
    x = bucket.restore(whole)["x"]
    assert x[3] == [3]
    assert x.get(9) is None
    assert written(bucket.commit()) == [], "nothing was changed"
    x = bucket.restore(whole)["x"]
    x[3].append(4)
    x[1] = [1]
    assert written(bucket.commit()) == ['"x":3'], "one was changed in place, one is equal"
    bucket.restore(whole)["n"] = 1
    assert written(bucket.commit()) == ["head"]
    x = bucket.restore(whole)["x"]
    del x[0]
    x[7] = 1
    bucket.attributes["y"]["b"] += 1
    assert written(bucket.commit()) == ['"x":7', '"y":"b"', 'gone "x":0', "head"]
    assert bucket.read(None) == {
        "n": 1,
        "x": {1: [1], 2: [2], 3: [3, 4], 4: [4], 7: 1},
        "y": Counter("aabb"),
    }


def test_what_is_not_asked_for_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket({"x": {f"key {i}": i for i in range(1000)}, "y": {i: i for i in range(1000)}})
    bucket.commit()
    read: list[int] = []
    find = StoredBucket.find

    def counted(self: StoredBucket, entry: int, name: bytes) -> Any:
        found = find(self, entry, name)
        read.extend(row.number for row in found)
        return found

    def never(self: StoredBucket, prefix: bytes) -> Any:
        raise AssertionError("all entries were read")

    monkeypatch.setattr(StoredBucket, "find", counted)
    monkeypatch.setattr(StoredBucket, "load", never)
    attributes = bucket.restore(EVERY)
    x, y = attributes["x"], attributes["y"]
    assert x["key 5"] == 5
    assert "key 7" in x
    assert "key 1000" not in x
    assert (x.pop("key 9"), x.get("none", 3)) == (9, 3)
    x["key 5"] = y[3] = 6
    x["new"] = x.setdefault("also new", 1)
    assert (len(x), len(y), bool(x)) == (1001, 1000, True)
    assert read == [5, 7, 9, 3]
    names = ["also new", "key 5", "new"]
    assert written(bucket.commit()) == [
        *(f'"x":"{name}"' for name in names),
        '"y":3',
        'gone "x":"key 9"',
        "head",
    ]
    monkeypatch.setattr(StoredBucket, "load", never)
    with pytest.raises(AssertionError, match="all entries were read"):
        list(bucket.restore(EVERY)["x"])


def test_entries_stay_in_their_order_wherever_they_were_read() -> None:
    bucket = Bucket({"x": dict.fromkeys("abcdef", 0)})
    bucket.commit()
    x = bucket.restore(EVERY)["x"]
    assert x["e"] == x["b"] == 0
    del x["c"]
    x["g"] = 1
    x["a"] = x.pop("a") + 1
    assert "".join(x) == "bdefga"
    bucket.commit()
    x = bucket.restore(EVERY)["x"]
    x["c"] = 1
    bucket.commit()
    assert "".join(bucket.read(None)["x"]) == "bdefgac"


def test_a_mapping_that_was_sorted_is_kept_so() -> None:
    bucket = Bucket({"x": OrderedDict((k, 0) for k in "fbdac")})
    bucket.commit()
    x = bucket.restore(None)["x"]
    x.move_to_end("a", last=False)
    bucket.commit()
    assert "".join(bucket.read(None)["x"]) == "afbdc"
    bucket.restore(None)["x"] = dict(sorted(bucket.attributes["x"].items()))
    bucket.commit()
    assert "".join(bucket.read(None)["x"]) == "abcdf"
    assert type(bucket.read(None)["x"]) is dict


def test_another_mapping_under_the_same_name_takes_the_place_of_all_entries() -> None:
    bucket = Bucket({"x": {"a": 1, "b": 2, "c": 3}, "y": {"a": 1}})
    bucket.commit()
    bucket.restore(EVERY)["x"] = defaultdict(int, {"b": 2, "a": 5})
    del bucket.attributes["y"]
    assert written(bucket.commit()) == ['"x":"a"', 'gone "x":"c"', 'gone "y":"a"', "head"]
    x = bucket.read(None)["x"]
    assert list(x.items()) == [("b", 2), ("a", 5)]
    assert x["new"] == 0
    bucket.restore(EVERY)["x"] = 7
    assert written(bucket.commit()) == ['gone "x":"a"', 'gone "x":"b"', "head"]
    assert bucket.read(None) == {"x": 7}


@pytest.mark.parametrize("strange", [math.nan, time(1), np.datetime64(1, "s")], ids=repr)
def test_a_mapping_with_keys_that_cannot_be_found_is_in_the_head(strange: Any) -> None:
    bucket = Bucket({"x": {"a": 1}})
    bucket.commit()
    bucket.restore(EVERY)["x"][strange] = 2
    assert written(bucket.commit()) == ['gone "x":"a"', "head"]
    x = bucket.restore(EVERY)["x"]
    assert type(x) is dict
    assert list(x.values()) == [1, 2]
    for key in list(x)[1:]:
        del x[key]
    assert written(bucket.commit()) == ['"x":"a"', "head"]
    assert bucket.read(EVERY)["x"].get("a") == 1


def test_not_a_number_may_be_a_key_several_times() -> None:
    bucket = Bucket({"x": {math.nan: 1, float("nan"): 2}})
    bucket.commit()
    assert repr(bucket.restore(EVERY)["x"]) == "{nan: 1, nan: 2}"
    assert bucket.commit() == []


def test_names_of_attributes_may_be_anything() -> None:
    odd = {'a"': {1: 1}, 'a":1': {2: 2}, "\ud800": {3: 3}, 5: {4: 4}}
    bucket = Bucket({})
    bucket.attributes = odd  # type: ignore[assignment]
    bucket.commit()
    assert bucket.read(None) == odd
    assert list(bucket.read(None)) == list(odd)


def test_arrow_and_numpy_are_kept_beside_other_values() -> None:
    made = {"x": {"t": pa.table({"a": [1]}), "n": 1, "a": np.arange(3)}, "t": pa.array([1])}
    bucket = Bucket(made)
    bucket.commit()
    for whole in (EVERY, None):
        found = bucket.restore(whole)
        assert found["x"]["t"].equals(made["x"]["t"])  # type: ignore[index]
        assert found["x"]["a"].tolist() == [0, 1, 2]
        assert found["t"].equals(made["t"])
        assert written(bucket.commit()) == []
    bucket.restore(EVERY)["x"]["a"][0] = 5
    assert written(bucket.commit()) == ['"x":"a"']
    assert bucket.read(None)["x"]["a"].tolist() == [5, 1, 2]


SHARED = [1]


@pytest.mark.parametrize(
    ("attributes", "path", "problem"),
    [
        ({"x": {"a": SHARED, "b": SHARED}}, "self.x['b']", "is the same object as self.x['a']"),
        ({"n": SHARED, "x": {1: {2: SHARED}}}, "self.x[1][2]", "is the same object as self.n"),
        ({"x": SHARED, "y": SHARED}, "self.y", "is the same object as self.x"),
        ({"x": {"a": object()}}, "self.x['a']", "is of the type builtins.object"),
        ({"x": {(1, len): 1}}, "the keys of self.x[0][1]", "is of the type"),
        ({"x": defaultdict(lambda: 0)}, "self.x", "is a defaultdict of a function"),
        ({"n": {1: 2}.keys()}, "self.n", "is of the type builtins.dict_keys"),
    ],
)
def test_what_cannot_be_kept_is_named(attributes: Any, path: str, problem: str) -> None:
    with pytest.raises(NotPlain) as caught:
        Bucket(attributes).commit()
    assert (caught.value.path, problem in caught.value.problem) == (path, True)


def test_a_mapping_that_is_kept_twice_is_refused_whenever_that_happens() -> None:
    bucket = Bucket({"x": {1: {}}, "y": {}})
    bucket.commit()
    attributes = bucket.restore(EVERY)
    attributes["y"][2] = attributes["x"][1]
    with pytest.raises(NotPlain, match="is the same object as"):
        bucket.commit()
    attributes = bucket.restore(None)
    attributes["y"] = attributes["x"]
    with pytest.raises(NotPlain, match="is the same object as"):
        bucket.commit()


class Own(Process):
    """Keeps its state as it likes."""

    def snapshot(self) -> Any:
        return {"own": vars(self)["x"]}

    def restore(self, state: Any) -> None:
        vars(self)["x"] = state["own"] if "own" in state else state["x"]


def test_a_class_may_begin_to_keep_its_state_itself_and_cease_to() -> None:
    bucket = Bucket({"x": {"a": 1, "b": 2}}, timers=(7, 5))
    bucket.commit()
    made, stored = Own(), StoredState(bucket.layers, [3]).bucket(3, 0)
    state = ObjectState(stored)
    kept = state.restored(made, EVERY, "test")
    assert kept is not None
    made.restore(kept.state)
    assert type(vars(made)["x"]) is dict
    rows = state.changes(made, made.snapshot(), kept.timers)
    assert written(rows) == ['gone "x":"a"', 'gone "x":"b"', "head"]
    assert [row.pending_us for row in rows if row.entry == HEAD] == [5]
    bucket.layers.append(bucket.table(rows))
    assert bucket.restore(EVERY) == {"own": {"a": 1, "b": 2}}
    assert written(bucket.commit()) == ['"own":"a"', '"own":"b"', "head"]


@pytest.mark.parametrize(
    "mapping",
    [{}, Counter(), OrderedDict(), defaultdict(), defaultdict(int), defaultdict(Counter)],
    ids=str,
)
def test_the_head_of_a_mapping_is_written_as_json_has_it(mapping: Any) -> None:
    empty = MappingHead.of(mapping)
    assert empty is not None
    for head in (empty, empty._replace(number=12, size=7)):
        assert head.text() == json.dumps(head)
