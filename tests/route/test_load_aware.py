"""The compiled partitioners beside the plain ones of the paper, and what is stored of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.partition import Plain
from tidegate.errors import OptionError
from tidegate.route.bucket import hash_of
from tidegate.route.ledger import MOST_TALLIES, Ledger
from tidegate.route.load_aware import (
    AffinityByKeys,
    AffinityByTuples,
    FewestKeys,
    Hybrid,
    LoadAware,
    PartialKey,
    Shuffle,
)
from tidegate.route.mapping import Mapping, even
from tidegate.route.partitioner import Units
from tidegate.route.registry import partitioner_of

SOURCE = 17
BUCKETS = 12

units = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 2), st.integers(1, 9)), min_size=1, max_size=120
)
choices = st.integers(1, 5)
kinds = st.sampled_from(["exact", "hll"])
partitioners = st.one_of(
    st.just(Shuffle()),
    st.builds(PartialKey, choices),
    st.builds(FewestKeys, choices, kinds),
    st.builds(AffinityByKeys, choices, kinds),
    st.builds(AffinityByTuples, choices, kinds),
    st.builds(Hybrid, choices, kinds, st.sampled_from([0.0, 0.3, 0.5, 1.0])),
)


def place(
    partitioner: LoadAware, mapping: Mapping, ledger: Ledger, rows: Sequence[tuple[int, int, int]]
) -> list[int]:
    """The instances of units (key, period, weight)."""
    key, period, weight = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    given = Units(
        [pa.array(key)], len(rows), weights=weight, periods=period, ledger=ledger, source="s"
    )
    return mapping.owner_array[partitioner.buckets(given, mapping)].tolist()


def plain(
    partitioner: LoadAware, workers: int, slides: bool, rows: Sequence[tuple[int, int, int]]
) -> list[int]:
    asked: dict[str, Any] = {
        f.name: getattr(partitioner, f.name)
        for f in fields(partitioner)  # type: ignore[arg-type]
    }
    asked |= {} if asked.get("keys") else {"keys": "exact"}
    task = Plain(partitioner.name, workers, slides=slides, **asked)
    words = hash_of([pa.array([k for k, _, _ in rows], pa.int64())]).tolist()
    return [task.decide(w, p, n) for w, (_, p, n) in zip(words, rows, strict=True)]


@given(partitioners, units, st.integers(1, 6), st.booleans())
def test_units_go_where_the_algorithm_of_the_paper_sends_them(
    partitioner: LoadAware, rows: list[tuple[int, int, int]], workers: int, slides: bool
) -> None:
    rows = sorted(rows, key=lambda row: row[1])
    mapping = even(BUCKETS, workers)
    ledger = Ledger.begun(mapping, partitioner.keys, SOURCE, slides)
    found = place(partitioner, mapping, ledger, rows)
    assert found == plain(partitioner, workers, slides, rows)


@pytest.mark.parametrize("slides", [False, True])
@pytest.mark.parametrize("name", ["shuffle", "pk?d=3", "cm", "am", "cam?d=3", "lm?p=0.3"])
def test_long_streams_go_where_the_algorithm_of_the_paper_sends_them(
    name: str, slides: bool
) -> None:
    """With keys that come back in later periods, and most tuples of a few keys."""
    chance = np.random.default_rng(7)
    keys = np.minimum(chance.zipf(1.3, 900), 200).tolist()
    rows = [(key, place // 300, 1 + place % 3) for place, key in enumerate(keys)]
    partitioner, mapping = partitioner_of(name), even(BUCKETS, 5)
    assert isinstance(partitioner, LoadAware)
    ledger = Ledger.begun(mapping, partitioner.keys, SOURCE, slides)
    assert place(partitioner, mapping, ledger, rows) == plain(partitioner, 5, slides, rows)


@given(partitioners, units, st.lists(st.integers(0, 120), max_size=4), st.booleans(), st.booleans())
def test_the_cut_does_not_change_where_units_go(
    partitioner: LoadAware,
    rows: list[tuple[int, int, int]],
    cuts: list[int],
    stored: bool,
    slides: bool,
) -> None:
    """In one batch or in many, with the ledger kept in memory or made again of its rows."""
    rows = sorted(rows, key=lambda row: row[1])
    mapping = even(BUCKETS, 5)
    whole = Ledger.begun(mapping, partitioner.keys, SOURCE, slides)
    expected = place(partitioner, mapping, whole, rows)
    ledger, log, found = Ledger.begun(mapping, partitioner.keys, SOURCE, slides), [], []
    bounds = [0, *sorted(min(c, len(rows)) for c in cuts), len(rows)]
    for low, high in pairwise(bounds):
        if low == high:
            continue
        found += place(partitioner, mapping, ledger, rows[low:high])
        log.append(ledger.news())
        if stored:
            ledger = Ledger.begun(mapping, partitioner.keys, SOURCE, slides)
            ledger.restore([pa.concat_tables(log)])
    assert found == expected


def test_many_short_windows_do_not_stay_in_memory() -> None:
    """What is let go of is in the rows that are stored, of which a whole ledger is made."""
    rows = [(place % 7, place // 3, 1) for place in range(2400)]
    partitioner, mapping = AffinityByTuples(), even(BUCKETS, 4)
    ledger = Ledger.begun(mapping, partitioner.keys, SOURCE, overlapping=True)
    found = place(partitioner, mapping, ledger, rows[:2000])
    assert len(ledger.tallies) <= MOST_TALLIES
    assert not ledger.whole
    again = Ledger.begun(mapping, partitioner.keys, SOURCE, overlapping=True)
    news = ledger.news()
    assert news is not None
    again.restore([news])
    assert again.whole
    found += place(partitioner, mapping, again, rows[2000:])
    assert found == plain(partitioner, 4, True, rows)


def test_a_ledger_takes_up_what_is_its_own() -> None:
    """Not what other sources have sent, nor what went to other owners of the buckets."""
    mapping, rows = even(BUCKETS, 3), [(k % 7, 0, 1) for k in range(40)]
    ledger = Ledger.begun(mapping, None, SOURCE)
    place(PartialKey(), mapping, ledger, rows)
    news = ledger.news()
    assert news is not None
    assert ledger.news() is None
    for source, epoch, tuples in ((SOURCE, 0, 40), (SOURCE + 1, 0, 0), (SOURCE, 1, 0)):
        other = Ledger.begun(even(BUCKETS, 3, epoch), None, source)
        other.restore([news])
        assert sum(int(t.loads.sum()) for t in other.tallies.values()) == tuples
    ledger.forget(1)
    assert not ledger.tallies


@settings(max_examples=20)
@given(st.integers(2, 40), st.integers(1, 6))
def test_candidates_are_different_instances_and_fair(workers: int, d: int) -> None:
    """With as many units as instances for one key, PK gives each of its candidates its share."""
    mapping = even(64, workers)
    most = min(d, workers)
    for key in range(30):
        ledger = Ledger.begun(mapping, None, SOURCE)
        found = place(PartialKey(d), mapping, ledger, [(key, 0, 1)] * (3 * most))
        assert sorted(np.unique(found, return_counts=True)[1].tolist()) == [3] * most
    ledger = Ledger.begun(mapping, None, SOURCE)
    where = place(PartialKey(1), mapping, ledger, [(key, 0, 1) for key in range(4000)])
    counts = np.bincount(where, minlength=workers)
    assert counts.min() > 0.3 * 4000 / workers


def test_every_key_of_an_instance_has_one_of_its_buckets() -> None:
    """Also where an instance owns few buckets, or none."""
    mapping = Mapping(even(4, 2).epoch, 4, (3, 0, 0, 3, 0, 0, 0))
    ledger = Ledger.begun(mapping, "exact", SOURCE)
    key = np.arange(5000)
    given = Units([pa.array(key)], len(key), periods=np.zeros(len(key), np.int64), ledger=ledger)
    buckets = AffinityByTuples().buckets(given, mapping)
    assert sorted(set(buckets.tolist())) == list(range(7))
    assert set(place(Shuffle(), mapping, Ledger.begun(mapping, None), [(1, 0, 1)] * 9)) == {0, 3}


def test_many_keys_are_counted_exactly_or_within_the_error_of_the_sketch() -> None:
    mapping, keys = even(BUCKETS, 3), np.arange(60_000)
    found = {}
    for kind in ("exact", "hll"):
        ledger = Ledger.begun(mapping, kind, SOURCE)
        FewestKeys(keys=kind).buckets(Units([pa.array(keys)], len(keys), ledger=ledger), mapping)
        (tally,) = ledger.tallies.values()
        assert tally.keys is not None
        found[kind] = float(tally.keys.counts.sum()), tally.keys.nbytes  # type: ignore[attr-defined]
    assert found["exact"][0] == 60_000
    assert abs(found["hll"][0] / 60_000 - 1) < 0.05
    assert found["hll"][1] < 0.02 * found["exact"][1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PartialKey(0), "d: must be at least 1 candidate for a key; got 0"),
        (lambda: AffinityByKeys(-1), "d: must be at least 1 candidate for a key; got -1"),
        (lambda: Hybrid(p=1.5), r"p: must be from 0 \(only keys\) to 1 \(only tuples\); got 1.5"),
        (lambda: FewestKeys(keys="bloom"), "keys: must be exact or hll; got bloom"),
    ],
)
def test_parameters_that_cannot_be_are_refused(make: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make()
