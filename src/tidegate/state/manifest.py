"""The record of the state after one batch: what a restart goes on from.

State after batch i is what manifest i says, nothing else. Its file is one JSON object with sorted
keys and, at its end, a `checksum` of all before it. Its length grows with the segments there are
and the distinct sets of buckets they have, not with segments times buckets.

Manifests are a log. Each has the `number` after the one before, and none is ever written over: of
two runs that both want to go on from one manifest, one gets the next number. A run that starts
takes the checkpoint over by repeating the newest manifest under the next number, as its owner; so a
run that was before it, and that does not know yet, finds its own next number taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.errors import CheckpointError
from tidegate.state.bucket_set import BucketSet
from tidegate.state.seal import damaged, seal, unseal
from tidegate.state.segment import Segment
from tidegate.state.short_text import pack_numbers, unpack_numbers

VERSION = 5
"""Of the manifest and of what it names: a new one when the columns of a state change as well."""

_OPTIONAL = ("query", "changes", "tables", "shedding", "digests", "at_us")
"""What is written only where there is something in it."""


@dataclass(frozen=True)
class Manifest:
    """The state after batch `batch`.

    `mappings` has, by subquery, its `epoch`, its `instances` and the `owners` of its buckets.
    `operators` has the live segments of each part of the state, oldest first, by subquery and what
    they hold ("join/left"). `sources`, `policy` and `epochs` are the loop's own, as JSON values
    (str, int, float, bool, None, lists, dicts with str keys). Of the history of mappings `epochs`
    has the newest; `epochs_logged` says how many were before them (`epoch_log`).
    `outputs` has the receipts of what sinks were given of this batch, by output, "" for the only
    one: what a restart publishes.
    `written` has by output the newest two batches that have something for it, newest first.
    `places` says by output where its sink has it, for sinks that can be found again by that.
    `files` names every other file of the store that this state needs (`gate/...`, `staged/...`):
    what neither it nor `operators` names is deleted by `Store.retire` and `Store.clean`.
    `owner` is the fencing number of the run that wrote it, which is in the names of all files that
    the run writes; greater than those of all runs before. `holder` tells a person who that is.
    `sides` has by stream who was late, and the first row that was rejected (`driver.side`).
    `epochs_by` has the first epoch and the owner of each row of files of `epoch_log`.
    `query` says which query made it, where it is not the one of meta.json; `changes` has the newest
    changes of the query, each with the first `batch` of the new one. `tables` has by name the
    versions of the tables that streams are joined to, the oldest first (`driver.tables`).
    `shedding` has what is kept of the tuples of subqueries that shed (`driver.shedding`). `digests`
    has by output the digest of all its rows so far (`sink.digest`), but for an output that an
    earlier version began without one. `at_us` is when it was committed, in microseconds since 1970
    on the clock of the driver's host, where earlier states are kept (`archive`), else 0.
    """

    batch: int
    mappings: Mapping[str, Mapping[str, Any]]
    frontier_us: int
    sources: tuple[Mapping[str, Any], ...] = ()
    operators: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    epochs: tuple[Mapping[str, Any], ...] = ()
    epochs_logged: int = 0
    finished: bool = False
    files: tuple[str, ...] = ()
    outputs: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    written: Mapping[str, list[int]] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    owner: int = 0
    holder: Mapping[str, Any] = field(default_factory=dict)
    epochs_by: tuple[tuple[int, int], ...] = ()
    query: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[Mapping[str, Any], ...] = ()
    sides: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    shedding: Mapping[str, Any] = field(default_factory=dict)
    digests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    at_us: int = 0
    version: int = VERSION

    @property
    def number(self) -> int:
        """Its place in the log of manifests: a batch more or an owner more is one further."""
        return self.batch + self.owner

    @property
    def was_cut_over(self) -> bool:
        """Whether the query was changed after its batch: then another one has made the batch."""
        return bool(self.changes) and int(self.changes[-1]["batch"]) > self.batch

    @property
    def instances(self) -> int:
        """The instances of the subquery that has most."""
        return max(int(m["instances"]) for m in self.mappings.values())

    @property
    def epoch(self) -> int:
        """How often a mapping has changed in the subquery where it did most often."""
        return max(int(m["epoch"]) for m in self.mappings.values())

    @property
    def buckets(self) -> int:
        """How many buckets the state of every subquery has."""
        return max(len(m["owners"]) for m in self.mappings.values())

    def written_of(self, output: str) -> list[int]:
        """The newest batches of which an output has something; before that was kept, all had.

        An output that was not there has nothing.
        """
        every = [batch for batch in (self.batch, self.batch - 1) if batch >= 0]
        return self.written.get(output, [] if self.written else every)

    def segments(self) -> tuple[Segment, ...]:
        """The live segments of all operators, operators by name."""
        return tuple(s for name in sorted(self.operators) for s in self.operators[name])

    def names(self) -> frozenset[str]:
        """The files that this state needs, as names below the root of the store."""
        return frozenset(self.files) | {segment.path for segment in self.segments()}

    def to_json(self) -> str:
        """The text of the manifest's file; equal manifests give equal text."""
        sets: dict[BucketSet, int] = {}
        operators = {
            name: [
                {**segment.__dict__, "buckets": sets.setdefault(segment.buckets, len(sets))}
                for segment in self.operators[name]
            ]
            for name in sorted(self.operators)
        }
        mappings = {
            name: {**of, "owners": pack_numbers(of["owners"])} for name, of in self.mappings.items()
        }
        body = {**self.__dict__, "operators": operators, "mappings": mappings}
        body = {name: value for name, value in body.items() if value or name not in _OPTIONAL}
        return seal({**body, "bucket_sets": [buckets.text for buckets in sets]})

    @classmethod
    def from_json(cls, text: str | bytes, where: str) -> Manifest:
        """Read what `to_json` wrote; damage is a StateError that names `where`."""
        body = unseal(text, where)
        check_version(body.get("version"), where)
        try:
            sets = [BucketSet.from_text(packed) for packed in body.pop("bucket_sets")]
            operators = {
                name: tuple(Segment(**{**of, "buckets": sets[of["buckets"]]}) for of in segments)
                for name, segments in body["operators"].items()
            }
            mappings = {
                name: {**of, "owners": unpack_numbers(of["owners"])}
                for name, of in body["mappings"].items()
            }
            outputs = {name: tuple(receipts) for name, receipts in body["outputs"].items()}
            lists = {k: tuple(body[k]) for k in ("sources", "epochs", "files")}
            lists["changes"] = tuple(body.get("changes", ()))
            lists["epochs_by"] = tuple((int(first), int(by)) for first, by in body["epochs_by"])
            dicts = {"operators": operators, "mappings": mappings, "outputs": outputs}
            return cls(**{**body, **lists, **dicts})
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise damaged(where, f"a wrong member: {error}") from error


def check_version(version: object, where: str) -> None:
    """Refuse a file of another layout before its members are looked at."""
    if version != VERSION:
        raise CheckpointError(
            where,
            f"must be of version {VERSION}",
            f"version {version}",
            "Run it with the Tidegate that wrote it, or start from an empty checkpoint.",
        )
