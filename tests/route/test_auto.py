"""The partitioner that chooses among others: what it counts, when it chooses, and that cuts of the
input change neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.route.test_load_aware import BUCKETS, SOURCE, place
from tidegate.route import auto
from tidegate.route.auto import FIRST_LOOK, Auto
from tidegate.route.bucket import hash_of
from tidegate.route.hash import Hash
from tidegate.route.ledger import Chosen, Ledger
from tidegate.route.load_aware import AffinityByTuples, LoadAware, PartialKey, Shuffle
from tidegate.route.mapping import Mapping, even
from tidegate.route.partitioner import Units
from tidegate.route.selection import CHEAP, OF_USERS, PartitionerChoice
from tidegate.route.survey import Survey

HASH, CAM, SHUFFLE, PK = PartitionerChoice

Rows = Sequence[tuple[int, int, int]]
"""Keys, periods and weights."""


def begun(mapping: Mapping, slides: bool = False) -> Ledger:
    """Windows are small here, so that what merging costs by itself is left out."""
    ledger = Ledger.begun(mapping, "exact", SOURCE, slides)
    ledger.costs = replace(CHEAP, step=0)
    return ledger


def again(ledger: Ledger, news: Sequence[pa.Table], chosen: Sequence[Chosen]) -> Ledger:
    """A ledger made of what was stored."""
    made = begun(ledger.mapping, ledger.overlapping)
    made.restore([pa.concat_tables(news)])
    for choice in chosen:
        made.tally(choice.period).choice = choice.choice
    return made


units = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=60
)


@given(units, st.lists(st.integers(0, 60), max_size=4), st.booleans(), st.booleans(), st.booleans())
def test_the_cut_changes_neither_choices_nor_places(
    rows: Rows, cuts: list[int], stored: bool, slides: bool, in_order: bool
) -> None:
    """In one batch or in many, kept in memory or made again, in the order of time or not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auto, "FIRST_LOOK", 3)
        patch.setattr(
            auto, "selected", lambda told, costs, held: PartitionerChoice(told.tuples % 4)
        )
        # Where windows overlap cAM looks back, at all of a batch that is of an earlier period.
        rows = sorted(rows, key=lambda row: row[1]) if in_order or slides else rows
        mapping = even(BUCKETS, 5)
        whole = begun(mapping, slides)
        expected = place(Auto(), mapping, whole, rows)
        ledger, log, chosen, found = begun(mapping, slides), [], [], []
        bounds = [0, *sorted(min(c, len(rows)) for c in cuts), len(rows)]
        for low, high in pairwise(bounds):
            if low < high:
                found += place(Auto(), mapping, ledger, rows[low:high])
                news = ledger.news()
                assert news is not None
                log.append(news)
                chosen += ledger.chosen
                ledger.chosen = []
                ledger = again(ledger, log, chosen) if stored else ledger
    assert found == expected
    assert chosen == whole.chosen
    assert {c.period for c in chosen} == {period for _, period, _ in rows}


@pytest.mark.parametrize(
    ("choice", "twin"),
    [(CAM, AffinityByTuples()), (SHUFFLE, Shuffle()), (HASH, Hash()), (PK, PartialKey())],
)
def test_each_choice_places_as_the_partitioner_of_its_name(
    choice: PartitionerChoice, twin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the second period on, for which there is something to choose from."""
    monkeypatch.setattr(auto, "selected", lambda told, costs, held: choice)
    chance = np.random.default_rng(3)
    rows = [(int(key) % 90, 1, 1) for key in chance.zipf(1.3, 700)]
    mapping = even(BUCKETS, 5)
    ledger = begun(mapping)
    place(Auto(), mapping, ledger, [(0, 0, 1)])
    if isinstance(twin, LoadAware):
        expected = place(twin, mapping, Ledger.begun(mapping, twin.keys), rows)
    else:
        keys = [pa.array([key for key, _, _ in rows])]
        expected = mapping.owner_array[twin.buckets(Units(keys, len(rows)), mapping)].tolist()
    assert place(Auto(), mapping, ledger, rows) == expected
    assert [c.choice for c in ledger.chosen] == [HASH, choice]


def windows(counts: Sequence[dict[int, int]]) -> list[tuple[int, int, int]]:
    """Periods of tuples, so many of each key, in turn."""
    chance = np.random.default_rng(11)
    found = []
    for period, by_key in enumerate(counts):
        keys = np.repeat(list(by_key), list(by_key.values()))
        found += [(int(key), period, 1) for key in chance.permutation(keys)]
    return found


FEW = dict.fromkeys(range(4), 1_000)
EVEN = dict.fromkeys(range(2_000), 2)
UNEVEN = {key: 24_000 // (key + 9) for key in range(500)}


def test_choices_follow_the_stream() -> None:
    """A window late, and not back and forth where it stays as it is."""
    mapping = even(64, 8)
    ledger = begun(mapping)
    ledger.costs = replace(OF_USERS, step=0)
    place(Auto(), mapping, ledger, windows([EVEN, FEW, FEW, FEW, EVEN, EVEN, UNEVEN, UNEVEN]))
    by_period = {c.period: c.choice for c in ledger.chosen}
    assert list(by_period.values()) == [HASH, HASH, SHUFFLE, SHUFFLE, SHUFFLE, HASH, HASH, CAM]
    last = ledger.chosen[-1]
    assert (last.before, last.measured) == (HASH, ledger.measured(ledger.survey(6), 2))


def test_a_stream_that_begins_is_looked_at_before_its_first_window_ends() -> None:
    mapping = even(64, 8)
    ledger = begun(mapping)
    to = place(Auto(), mapping, ledger, windows([FEW]))
    assert [(c.choice, c.before) for c in ledger.chosen] == [(HASH, None), (SHUFFLE, HASH)]
    assert ledger.chosen[1].measured is not None
    assert ledger.chosen[1].measured.tuples == FIRST_LOOK
    assert len(set(to[:FIRST_LOOK])) <= 4
    assert set(to[FIRST_LOOK:]) == set(range(8))


def test_a_switch_chooses_for_the_instances_there_are_then() -> None:
    """From the same survey: what was counted does not depend on who owned the buckets."""
    rows = windows([FEW, FEW])
    one = even(64, 1)
    ledger = begun(one)
    place(Auto(), one, ledger, rows[:6_000])
    assert {c.choice for c in ledger.chosen} == {HASH}
    news, many = ledger.news(), even(64, 8, epoch=1)
    assert news is not None
    after = begun(many)
    after.restore([news])
    after.former = {0: HASH, 1: HASH}
    assert int(after.tally(1).loads.sum()) == 0
    place(Auto(), many, after, rows[6_000:])
    (chosen,) = after.chosen
    assert (chosen.period, chosen.choice, chosen.before) == (1, SHUFFLE, HASH)
    assert chosen.measured is not None
    assert (chosen.measured.tuples, chosen.measured.instances) == (4_000, 8)


@given(units, st.integers(1, 5))
def test_units_of_one_key_may_be_given_by_its_number(rows: Rows, workers: int) -> None:
    """As aggregates do it: a key is hashed once."""
    key, period, weight = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    mapping, found = even(BUCKETS, workers), []
    heads, codes = np.unique(key, return_inverse=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auto, "FIRST_LOOK", 3)
        patch.setattr(
            auto, "selected", lambda told, costs, held: PartitionerChoice(told.tuples % 4)
        )
        for keys, by_number in ((key, None), (heads, codes.reshape(-1))):
            ledger = begun(mapping)
            given = Units([pa.array(keys)], len(rows), weight, codes=by_number, periods=period,
                          ledger=ledger)  # fmt: skip
            found.append((Auto().buckets(given, mapping).tolist(), ledger.chosen))
    assert found[0] == found[1]


def test_where_tasks_do_not_see_each_other_keys_are_not_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(auto, "selected", lambda told, costs, held: CAM)
    mapping, rows = even(64, 4), windows([FEW, FEW])
    for partitioner, alone in ((Auto(), True), (Auto(), False), (Auto(keys="hll"), True)):
        ledger = Ledger.begun(mapping, partitioner.keys, SOURCE)
        ledger.alone = alone
        place(partitioner, mapping, ledger, rows)
        together = alone and partitioner.keys == "exact"
        assert any(c.apart and c.period == 1 for c in ledger.chosen) is not together


def test_what_comes_after_the_first_tuple_of_a_period_counts_for_the_next_one() -> None:
    """Also in one batch: another cut would have it come later."""
    mapping = even(64, 4)
    ledger = begun(mapping)
    early, late = [(1, 0, 1)] * 5, [(2, 0, 1)] * 7
    place(Auto(), mapping, ledger, [*early, (3, 1, 1), *late])
    told = [c.measured for c in ledger.chosen if c.period == 1]
    assert [one.tuples for one in told if one is not None] == [5]


def test_keys_of_late_tuples_are_not_together_where_windows_overlap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A window may have the next period too, for which a key has a place already."""
    monkeypatch.setattr(auto, "selected", lambda told, costs, held: CAM)
    mapping = even(64, 4)
    for slides in (False, True):
        ledger = begun(mapping, slides)
        for rows in ([(1, 0, 1), (2, 1, 1)], [(2, 2, 1)], [(7, 1, 1)]):
            place(Auto(), mapping, ledger, rows)
        assert [c.period for c in ledger.chosen if c.apart] == [1] * slides


@given(st.lists(st.integers(0, 400), min_size=1, max_size=300), st.integers(1, 9))
def test_a_survey_knows_what_hash_would_do(keys: list[int], workers: int) -> None:
    mapping = even(BUCKETS, workers)
    ledger = begun(mapping)
    place(Auto(), mapping, ledger, [(key, 0, 1) for key in keys])
    told = ledger.measured(ledger.survey(0), 2)
    given = Units([pa.array(keys, pa.int64())], len(keys))
    by_hash = np.bincount(mapping.owner_array[Hash().buckets(given, mapping)])
    assert (told.tuples, told.by_hash) == (len(keys), by_hash.max())
    assert abs(told.groups - len(set(keys))) <= 1 + 0.05 * len(set(keys))
    assert told.by_key >= len(keys) / workers


@pytest.mark.parametrize("workers", [2, 8, 32])
def test_a_survey_knows_nearly_what_cam_would_do(workers: int) -> None:
    chance = np.random.default_rng(5)
    mapping, ones = even(64, workers), np.ones(60_000, np.int64)
    for keys in (chance.integers(0, 20_000, 60_000), chance.zipf(1.3, 60_000) % 20_000):
        survey, ledger = Survey(64), begun(mapping)
        survey.add(hash_of([pa.array(keys)]), ones)
        AffinityByTuples().buckets(Units([pa.array(keys)], len(keys), ledger=ledger), mapping)
        loads = ledger.tally(0).loads
        assert ledger.measured(survey, 2).by_key == pytest.approx(loads.max(), rel=0.12)
