"""Manifests: the same state is the same text, and altered text is never taken for a state."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.state.mapping import mappings
from tidegate.batch import MAX_US, MIN_US
from tidegate.errors import CheckpointError, StateError
from tidegate.state.bucket_set import BucketSet
from tidegate.state.manifest import Manifest
from tidegate.state.seal import seal, unseal
from tidegate.state.segment.segment import Segment

SEGMENT = Segment("00000003-0001", 10, 2000, 123456, BucketSet.of([0, 3, 900]), -5, 7, 6)
MANIFEST = Manifest(
    batch=3,
    mappings={
        **mappings(0, 1, 0, 1, epoch=1),
        "join": {"epoch": 3, "instances": 1, "owners": [0] * 4},
    },
    frontier_us=1_700_000_000_000_000,
    sources=({"id": "rides.parquet", "position": 12, "newest_us": None},),
    operators={"aggregate/panes": (SEGMENT,), "join/left": ()},
    counters={"rows_in": 12, "late": 0},
    policy={"cooldown": 1.5, "asked": None},
    epochs=({"subquery": "aggregate", "epoch": 1, "batch": 2, "instances": 2},),
    files=("gate/00000003.arrow",),
    outputs={
        "": ({"name": "part-00000.parquet", "rows": 3, "bytes": 99, "checksum": 7, "more": {}},),
        "busy": (),
    },
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def test_a_manifest_comes_back() -> None:
    assert Manifest.from_json(MANIFEST.to_json(), "m.json") == MANIFEST


@given(policy=st.dictionaries(st.text(), VALUES), frontier=st.integers(MIN_US, MAX_US))
def test_any_json_values_come_back(policy: dict[str, object], frontier: int) -> None:
    manifest = Manifest(0, mappings(0), frontier, policy=policy, epochs=(policy,))
    text = manifest.to_json()
    assert Manifest.from_json(text.encode(), "m.json") == manifest
    assert Manifest.from_json(text, "m.json").to_json() == text


def test_the_text_does_not_depend_on_the_order_of_members() -> None:
    counters = dict(reversed(MANIFEST.counters.items()))
    twin = Manifest(**{**MANIFEST.__dict__, "counters": counters})
    assert twin.to_json() == MANIFEST.to_json()


def test_it_is_one_json_object_with_its_checksum() -> None:
    document = json.loads(MANIFEST.to_json())
    assert document["batch"] == 3
    assert document["operators"]["aggregate/panes"][0]["name"] == "00000003-0001"
    assert len(document["checksum"]) == 8


def test_numpy_numbers_are_numbers() -> None:
    counters = {"rows": np.int64(5)}
    owners = {"epoch": np.int32(0), "instances": 1, "owners": [np.int32(0)]}
    manifest = Manifest(0, {"join": owners}, 0, counters=counters)  # type: ignore[arg-type]
    back = Manifest.from_json(manifest.to_json(), "m.json")
    assert back.counters == {"rows": 5}
    assert back.mappings == {"join": {"epoch": 0, "instances": 1, "owners": [0]}}


def test_other_objects_are_refused_before_anything_is_written() -> None:
    with pytest.raises(TypeError, match="set has no place in a manifest"):
        Manifest(0, mappings(0), 0, policy={"x": {1}}).to_json()


@pytest.mark.parametrize("place", range(0, len(MANIFEST.to_json()), 7))
def test_any_flipped_bit_is_found(place: int) -> None:
    data = bytearray(MANIFEST.to_json().encode())
    data[place] ^= 1 << (place % 7)
    with pytest.raises(StateError, match=r"^manifest/x\.json: must be as it was written; got "):
        Manifest.from_json(bytes(data), "manifest/x.json")


@pytest.mark.parametrize("length", [0, 1, 100, len(MANIFEST.to_json()) - 1])
def test_a_truncated_one_is_found(length: int) -> None:
    with pytest.raises(StateError, match="nothing was changed"):
        Manifest.from_json(MANIFEST.to_json()[:length], "m.json")


@pytest.mark.parametrize("text", ["[]", "{}", "null", '{"checksum": 1}', "\x00", '{"a":1}'])
def test_other_json_is_found(text: str) -> None:
    with pytest.raises(StateError):
        Manifest.from_json(text, "m.json")


@pytest.mark.parametrize(
    "wrong",
    [
        {"operators": {"a": [{}]}},
        {"mappings": None},
        {"extra": 1},
        {"bucket_sets": []},
        {"bucket_sets": ["?"]},
        {"mappings": {"join": {"epoch": 0, "instances": 1, "owners": "eJw="}}},
    ],
)
def test_members_of_another_shape_are_found(wrong: dict[str, object]) -> None:
    body = unseal(MANIFEST.to_json(), "m.json")
    with pytest.raises(StateError, match="a wrong member"):
        Manifest.from_json(seal({**body, **wrong}), "m.json")


@pytest.mark.parametrize("version", [99, 4, 3, 2, 1, 0, None, "5"])
def test_another_version_says_so(version: object) -> None:
    other = seal({"version": version, "anything": "else"})
    with pytest.raises(CheckpointError) as caught:
        Manifest.from_json(other, "m.json")
    assert str(caught.value) == (
        f"m.json: must be of version 5; got version {version}. "
        "Run it with the Tidegate that wrote it, or start from an empty checkpoint."
    )


BEFORE = (
    '{"batch":3,"checksum":"630d1a22","frontier_us":7,"mappings":{"aggregate":{"epoch":0,'
    '"instances":1,"owners":[0]}},"operators":{},"version":2}\n'
)


def test_a_manifest_that_the_version_before_wrote_says_so() -> None:
    with pytest.raises(CheckpointError, match=r"must be of version 5; got version 2\. Run"):
        Manifest.from_json(BEFORE, "m.json")
    for place in range(0, len(BEFORE), 5):
        data = bytearray(BEFORE.encode())
        data[place] ^= 1
        with pytest.raises(StateError, match="must be as it was written"):
            Manifest.from_json(bytes(data), "m.json")
    now = BEFORE.replace('"version":2', '"version":5')
    with pytest.raises(StateError, match="must be as it was written"):
        Manifest.from_json(now, "m.json")


@pytest.mark.parametrize("text", ["", "\n", ',"checksum":"00000000"}\n', '{"a":1}\n'])
def test_an_end_alone_is_no_file(text: str) -> None:
    with pytest.raises(StateError, match="must be as it was written"):
        unseal(text, "x.json")


INSTANCES, BUCKETS, SEGMENTS = 8, 10_000, 1_000


def large(sets: list[BucketSet]) -> Manifest:
    """A manifest of many segments, with owners that many switches have left in no order."""
    owners = np.random.default_rng(1).permutation(np.arange(BUCKETS) % INSTANCES).tolist()
    segments = tuple(
        Segment(f"{i:08d}-aggregate-0123abcd-0001-0", 10**6, 10**8, 2**32 - 1, s, -i, i, 10**9)
        for i, s in enumerate(sets)
    )
    mapping = {"epoch": 70, "instances": INSTANCES, "owners": owners}
    return Manifest(10**6, {"aggregate": mapping}, 10**15, operators={"aggregate/panes": segments})


def test_ten_thousand_buckets_and_a_thousand_segments_are_a_small_manifest() -> None:
    """Segments of an instance share the set of its buckets, whatever that is."""
    owners = np.random.default_rng(1).permutation(np.arange(BUCKETS) % INSTANCES)
    owned = [BucketSet.of(np.flatnonzero(owners == i)) for i in range(INSTANCES)]
    manifest = large([owned[i % INSTANCES] for i in range(SEGMENTS)])
    text = manifest.to_json()
    assert len(text) < 250_000
    assert Manifest.from_json(text, "m.json") == manifest


def test_no_choice_of_buckets_makes_a_large_manifest() -> None:
    """At worst every segment has other buckets, half of them: no code can make that shorter."""
    chance = np.random.default_rng(2)
    sets = [BucketSet.where(chance.random(BUCKETS) < 0.5) for _ in range(SEGMENTS)]
    text = large(sets).to_json()
    assert len(text) < 2_000_000
    assert [s.buckets for s in Manifest.from_json(text, "m.json").segments()] == sets


def test_the_whole_query_is_as_its_busiest_subquery() -> None:
    assert (MANIFEST.instances, MANIFEST.epoch, MANIFEST.buckets) == (2, 3, 4)


def test_it_knows_the_files_it_needs() -> None:
    assert MANIFEST.names() == {"segment/00000003-0001.arrow", "gate/00000003.arrow"}
    assert MANIFEST.segments() == (SEGMENT,)
