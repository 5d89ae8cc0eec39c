"""The critical path of a window: what its fullest instance does, then its fullest merger.

All instances at once evaluate a window in part, and all of them at once merge what splitting has
made of its groups, by the hash of the group. Each step takes as long as the instance that has most
to do. What a unit, a group and a part cost is measured by running the kernels on tuples of the
stream (`partition_costs`).

The dissertation merges at one worker, and nothing where keys have one place: `merged_at_one`. Like
its section 3.7, paths leave out what is done before tuples are placed; `map_s` says what that is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from partition_balance import BUCKETS, begun, keys_at, placed
from partition_streams import Ints, Window

from tidegate.route.auto import Auto
from tidegate.route.hash import BY_HASH
from tidegate.route.mapping import Mapping, even
from tidegate.route.partitioner import Units
from tidegate.route.registry import partitioner_of
from tidegate.route.selection import CHEAP
from tidegate.route.selection import Costs as Weights

NAMES = ("hash", "shuffle", "pk", "cm", "am", "cam", "cam?d=5", "cam?keys=hll", "lm", "auto")
ONE_PLACE = ("hash", "am", "am?d=5", "cam", "cam?d=5")
"""Those that split no key where one source decides, as exact sets are asked."""
BATCHES = 6
"""Where map tasks fold, a window comes in so many batches: a key is a partial in each."""


@dataclass(frozen=True)
class Line:
    """Seconds of a step: for itself, for each unit that it is given, and for each group."""

    step_s: float
    unit_s: float
    group_s: float

    def seconds(self, units: npt.NDArray[Any], groups: npt.NDArray[Any]) -> Any:
        """Nothing for who is given nothing."""
        found = self.step_s + self.unit_s * units + self.group_s * groups
        return np.where(units > 0, found, 0.0)


@dataclass(frozen=True)
class Costs:
    """What the kernels need for a tuple before it is placed, and for the three steps after that.

    An instance gives results (`whole`) where keys have one place, else parts for the merge.
    """

    map_tuple_s: float
    whole: Line
    partly: Line
    merge: Line

    @staticmethod
    def of(told: dict[str, Any]) -> Costs:
        """As a report has them."""
        lines = {name: Line(**told[name]) for name in ("whole", "partly", "merge")}
        return Costs(map_tuple_s=told["map_tuple_s"], **lines)


@dataclass(frozen=True)
class Load:
    """What instances are given of one window, and what each of them merges after that.

    `parts` and `merged` (groups) are None where keys have one place: there is no merge.
    """

    tuples: int
    units: Ints
    groups: Ints
    parts: Ints | None = None
    merged: Ints | None = None


@dataclass(frozen=True)
class Path:
    """Seconds of the steps, of which the last two are the path."""

    map_s: float
    evaluate_s: float
    merge_s: float

    @property
    def seconds(self) -> float:
        return self.evaluate_s + self.merge_s


def critical_path(load: Load, costs: Costs) -> Path:
    """Each step takes as long as its slowest instance; the map tasks are as many, and alike."""
    map_s = costs.map_tuple_s * load.tuples / len(load.units)
    if load.parts is None:
        return Path(map_s, float(costs.whole.seconds(load.units, load.groups).max()), 0.0)
    evaluate_s = float(costs.partly.seconds(load.units, load.groups).max())
    return Path(map_s, evaluate_s, float(costs.merge.seconds(load.parts, load.merged).max()))


def merged_at_one(load: Load, one_place: bool) -> Load:
    """The same as in the dissertation: one worker merges, unless keys have one place."""
    if one_place or load.parts is None or load.merged is None:
        return replace(load, parts=None, merged=None)
    return replace(load, parts=load.parts.sum(keepdims=True), merged=load.merged.sum(keepdims=True))


def loads_of(
    name: str, windows: Sequence[Window], instances: int, folds_in_map: bool, weights: Weights
) -> list[Load]:
    """The loads of windows; `auto` chooses by the weights that an aggregate has."""
    if folds_in_map:
        return list(loads_of_partials(name, windows, instances))
    return list(loads_of_tuples(name, windows, instances, weights))


def loads_of_tuples(
    name: str, windows: Sequence[Window], instances: int, weights: Weights = CHEAP
) -> Iterator[Load]:
    """Every tuple is a unit."""
    mapping = even(BUCKETS, instances)
    for window, one in zip(windows, placed(name, windows, mapping, weights), strict=True):
        yield _load(window, mapping, window.codes, one.to, one.merges)


def loads_of_partials(name: str, windows: Sequence[Window], instances: int) -> Iterator[Load]:
    """A unit is what a map task folds the tuples of a key in a batch into; `auto` is hash then."""
    mapping, partitioner = even(BUCKETS, instances), partitioner_of(name)
    partitioner = BY_HASH if isinstance(partitioner, Auto) else partitioner
    ledger = begun(name, mapping)
    for number, window in enumerate(windows):
        codes, to = [], []
        for batch in np.array_split(window.codes, BATCHES):
            keys, first, counts = np.unique(batch, return_index=True, return_counts=True)
            order = np.argsort(first)
            keys, counts = keys[order], counts[order]
            if partitioner.splits_keys:
                units = Units(
                    window.heads,
                    len(keys),
                    counts,
                    codes=keys,
                    periods=np.full(len(keys), number),
                    ledger=ledger,
                )
                bucket = partitioner.buckets(units, mapping)
            else:
                bucket = partitioner.buckets(Units(window.heads, window.groups), mapping)[keys]
            codes.append(keys)
            to.append(mapping.owner_array[bucket].astype(np.int64))
        merges = partitioner.splits_keys
        yield _load(window, mapping, np.concatenate(codes), np.concatenate(to), merges)


def _load(window: Window, mapping: Mapping, codes: Ints, to: Ints, merges: bool) -> Load:
    count = mapping.instances
    there = keys_at(codes, to, window.groups, count)
    given = Load(window.rows, np.bincount(to, minlength=count), there.sum(axis=0))
    if not merges:
        return given
    bucket = BY_HASH.buckets(Units(window.heads, window.groups), mapping)
    owner = mapping.owner_array[bucket]
    parts = np.bincount(owner, weights=there.sum(axis=1), minlength=count).astype(np.int64)
    return replace(given, parts=parts, merged=np.bincount(owner, minlength=count))


def summed_up(name: str, loads: Sequence[Load], costs: Costs) -> dict[str, float]:
    """The means over windows but the first, in seconds; `at_one_s` is the dissertation's path."""
    found = [critical_path(load, costs) for load in loads[1:]]
    there = [critical_path(merged_at_one(load, name in ONE_PLACE), costs) for load in loads[1:]]
    return {
        "map_s": float(np.mean([one.map_s for one in found])),
        "evaluate_s": float(np.mean([one.evaluate_s for one in found])),
        "merge_s": float(np.mean([one.merge_s for one in found])),
        "path_s": float(np.mean([one.seconds for one in found])),
        "at_one_s": float(np.mean([one.seconds for one in there])),
    }
