"""Where partitioners put the tuples of a window: imbalance, aggregation cost, memory, speed.

With L_j the tuples of instance j and C_j its keys: the imbalance of tuples max L_j - mean L_j and
that of keys (equations 3.1 and 3.6 of the dissertation), both as shares of their mean, that of both
(3.10), and the aggregation cost, the sum of C_j, as a multiple of the keys there are (3.2).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from partition_streams import Ints, Window

from tidegate.route.auto import Auto
from tidegate.route.bucket import hash_of
from tidegate.route.choice_loop import by_load
from tidegate.route.key_memory import key_memory
from tidegate.route.ledger import Ledger
from tidegate.route.load_aware import LoadAware
from tidegate.route.mapping import Mapping, even
from tidegate.route.partitioner import Partitioner, Units
from tidegate.route.registry import partitioner_of
from tidegate.route.selection import CHEAP, Costs, PartitionerChoice

BUCKETS = 64
NAMES = (
    "hash",
    "shuffle",
    "pk",
    "pk?d=5",
    "cm",
    "cm?keys=hll",
    "am",
    "am?d=5",
    "am?keys=hll",
    "cam",
    "cam?d=5",
    "cam?keys=hll",
    "lm",
    "lm?keys=hll",
    "auto",
)
SOURCES = 4
"""How many decide independently, where there are several."""
DECISIONS = 2_000_000
FEW = np.arange(100)
"""Rows of a window that is placed so that loops are compiled."""
MEMORY_OF = ("cm", "am", "lm", "cm?keys=hll", "am?keys=hll", "lm?keys=hll")
AT_BOTH = ("cm", "lm")
"""Those that have a key at both of its candidates, in the worst case: table 4's."""


@dataclass(frozen=True)
class Placing:
    """The instance of each unit of a window, the seconds that took, and the bytes that it needed.

    With `merges`, groups may be in several places, and are merged after that.
    """

    to: Ints
    seconds: float
    nbytes: int
    merges: bool


def begun(name: str, mapping: Mapping, weights: Costs = CHEAP) -> Ledger:
    """What a source knows at its beginning: nothing, but by what weights `auto` is to choose."""
    partitioner = partitioner_of(name)
    kind = partitioner.keys if isinstance(partitioner, LoadAware) else None
    ledger = Ledger.begun(mapping, kind)
    ledger.costs = weights
    return ledger


def placed(
    name: str, windows: Sequence[Window], mapping: Mapping, weights: Costs = CHEAP
) -> Iterator[Placing]:
    """The tuples of windows, one after the other; one source decides, in the tuples' order."""
    ledger, partitioner = begun(name, mapping, weights), partitioner_of(name)
    for number, window in enumerate(windows):
        period = np.full(window.rows, number)
        began = time.process_time()
        if partitioner.splits_keys:
            units = Units(
                window.heads, window.rows, codes=window.codes, periods=period, ledger=ledger
            )
            bucket = partitioner.buckets(units, mapping)
        else:
            bucket = partitioner.buckets(Units(window.heads, window.groups), mapping)[window.codes]
        seconds = time.process_time() - began
        tally = ledger.tallies.get(number)
        nbytes = 0 if tally is None else tally.nbytes
        to = mapping.owner_array[bucket].astype(np.int64)
        yield Placing(to, seconds, nbytes, _merges(partitioner, ledger, number))


def _merges(partitioner: Partitioner, ledger: Ledger, period: int) -> bool:
    """Whether the groups of a window are merged: with `auto` only if one may be in several places.

    Hash keeps them together, and so does cAM where it was chosen alone.
    """
    if not isinstance(partitioner, Auto):
        return partitioner.splits_keys
    chosen = [one for one in ledger.chosen if one.period == period]
    by_hash = all(one.choice is PartitionerChoice.HASH for one in chosen)
    by_affinity = (
        len(chosen) == 1 and chosen[0].choice is PartitionerChoice.CAM and not chosen[0].apart
    )
    return not (by_hash or by_affinity)


def placed_apart(name: str, windows: Sequence[Window], mapping: Mapping) -> list[Ints]:
    """The same with several sources, which have the tuples in turn and do not see each other's."""
    to = [np.empty(window.rows, np.int64) for window in windows]
    for source in range(SOURCES):
        mine = [window.part(np.arange(source, window.rows, SOURCES)) for window in windows]
        for found, one in zip(to, placed(name, mine, mapping), strict=True):
            found[source::SOURCES] = one.to
    return to


def keys_at(codes: Ints, to: Ints, keys: int, instances: int) -> npt.NDArray[np.bool_]:
    """Which keys are at which instances, keys first."""
    there = np.zeros((keys, instances), np.bool_)
    there[codes, to] = True
    return there


def figures(codes: Ints, to: Ints, keys: int, instances: int) -> dict[str, float]:
    """The equations of the dissertation, for one window."""
    tuples = np.bincount(to, minlength=instances)
    there = keys_at(codes, to, keys, instances)
    per_instance, per_key = there.sum(axis=0), there.sum(axis=1)
    both = 0.5 * _scaled(tuples) + 0.5 * _scaled(per_instance)
    return {
        "tuple_imbalance": float(tuples.max() / tuples.mean() - 1),
        "key_imbalance": float(per_instance.max() / per_instance.mean() - 1),
        "hybrid_imbalance": float(both.max() - both.mean()),
        "aggregation_cost": float(per_key.sum()) / keys,
        "keys_split": float((per_key > 1).mean()),
        "keys": keys,
    }


def _scaled(loads: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    low, high = loads.min(), loads.max()
    return (loads - low) / (high - low) if high > low else np.zeros(len(loads))


def measured(name: str, windows: Sequence[Window], instances: int) -> dict[str, float]:
    """The means over windows but the first; times are of the CPU."""
    found = []
    for window, one in zip(windows, placed(name, windows, even(BUCKETS, instances)), strict=True):
        cost = {"ns_per_tuple": one.seconds / window.rows * 1e9, "bytes": float(one.nbytes)}
        found.append(figures(window.codes, one.to, window.groups, instances) | cost)
    return _means(found[1:])


def measured_apart(name: str, windows: Sequence[Window], instances: int) -> dict[str, float]:
    """The same figures where several sources decide."""
    to = placed_apart(name, windows, even(BUCKETS, instances))
    pairs = zip(windows, to, strict=True)
    return _means([figures(w.codes, one, w.groups, instances) for w, one in pairs][1:])


def _means(found: list[dict[str, float]]) -> dict[str, float]:
    return {what: float(np.mean([f[what] for f in found])) for what in found[0]}


def speeds(instances: int) -> dict[str, dict[str, float]]:
    """Million decisions a second of a core, with 100,000 keys that are hashed already."""
    chance = np.random.default_rng(1)
    words = chance.integers(0, 2**63, 100_000).astype(np.uint64)
    found: dict[str, dict[str, float]] = {}
    for law, codes in (
        ("zipf 1.2", chance.zipf(1.2, DECISIONS) % 100_000),
        ("uniform", chance.integers(0, 100_000, DECISIONS)),
    ):
        units, ones = words[codes], np.ones(DECISIONS, np.int64)
        for name in NAMES:
            partitioner = partitioner_of(name)
            if not isinstance(partitioner, LoadAware) or isinstance(partitioner, Auto):
                continue
            tally = Ledger.begun(even(BUCKETS, instances), partitioner.keys).tally(0)
            rule, began = partitioner.rule(instances), time.process_time()
            if tally.keys is None:
                by_load()(units, ones, rule.d, tally.loads)
            else:
                tally.keys.place(units, ones, rule, tally.loads, None)
            seconds = time.process_time() - began
            found.setdefault(name, {})[law] = round(DECISIONS / seconds / 1e6, 1)
    return found


def memory(keys: int, instances: int) -> dict[str, float]:
    """Table 4: megabytes that remember so many keys, at both candidates where a rule splits all."""
    words = hash_of([pa.array(np.arange(keys))])
    first = np.arange(keys) % instances
    found = {}
    for name in MEMORY_OF:
        kind = partitioner_of(name).keys  # type: ignore[attr-defined]
        known = key_memory(kind, instances)
        known.add(words, first)
        if name.partition("?")[0] in AT_BOTH:
            known.add(words, (first + 1) % instances)
        found[name] = known.nbytes / 1e6
    return found


def sketched(keys: int, instances: int) -> dict[str, dict[str, float]]:
    """AM with sets and with HyperLogLog where a window has so many keys, twice each, in any order.

    That is what a sketch gives away for its size: it has 4096 registers for all of them.
    """
    codes = np.random.default_rng(2).permutation(np.repeat(np.arange(keys), 2))
    mapping = even(BUCKETS, instances)
    found = {}
    for name in ("hash", "am", "am?keys=hll"):
        units = Units([pa.array(codes)], len(codes), ledger=begun(name, mapping))
        to = mapping.owner_array[partitioner_of(name).buckets(units, mapping)].astype(np.int64)
        found[name] = figures(codes, to, keys, instances)
    return found
