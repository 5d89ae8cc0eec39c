"""The record of the state after one batch, from which a restart goes on.

The state after batch i is what manifest i says, nothing else. Its file is one JSON object with
sorted keys; the last member is a `checksum` of all before it. Its length grows with the number of
segments and of distinct sets of buckets, not with segments times buckets.

Manifests are a log. Each has the `number` after the previous one, and no file is ever overwritten:
of two runs that both go on from one manifest, only one gets the next number. A run that starts
takes the checkpoint over: it writes the newest manifest again, under the next number and with
itself as owner. An earlier run that is still at work then finds its next number taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.errors import CheckpointError
from tidegate.state.bucket_set import BucketSet
from tidegate.state.seal import damaged, seal, unseal
from tidegate.state.segment.segment import Segment
from tidegate.state.short_text import pack_numbers, unpack_numbers

VERSION = 5
"""The version of manifests and of all files that they name. It also changes with the columns of a
state."""

_OPTIONAL = ("query", "changes", "tables", "shedding", "digests", "at_us", "signed")
"""Members that are written only if they are not empty."""


@dataclass(frozen=True)
class Manifest:
    """The state after batch `batch`.

    - `mappings`: by subquery its `epoch`, its `instances` and the `owners` of its buckets.
    - `operators`: the live segments of each part of the state, oldest first; the key is the
      subquery and the part ("join/left").
    - `sources`, `policy`, `epochs`: written and read by the loop, as JSON values.
    - `epochs`: the newest epochs of the history of mappings; `epochs_logged` is the number of
      earlier ones, which are in files (`epoch_log`), and `epochs_by` has for each row of these
      files its first epoch and the run that wrote it.
    - `outputs`: by output ("" for the only one) the receipts of what sinks got of this batch. A
      restart publishes these.
    - `written`: by output the newest two batches with rows for it, newest first.
    - `places`: by output where its sink has it, for sinks that can be found again by that.
    - `files`: every other file that this state needs (`gate/...`, `staged/...`). `Store.retire` and
      `Store.clean` delete what neither this nor `operators` names.
    - `owner`: the fencing number of the run that wrote the manifest, greater than those of all runs
      before. It is in the names of all files that the run writes. `holder` describes the run.
    - `sides`: by stream who was late, and the first row that was rejected (`driver.side`).
    - `query`: the query, where it is not the one of meta.json. `changes`: the newest changes of
      the query, each with the first `batch` of the new one.
    - `tables`: by name the versions of tables that streams are joined to, oldest first
      (`driver.tables`).
    - `shedding`: the rates at which subqueries keep tuples, with their changes (`driver.shedding`).
    - `digests`: by output the digest of all its rows so far (`sink.digest`); not for an output that
      an earlier version began without one.
    - `at_us`: when it was committed, in microseconds since 1970 on the clock of the driver's host,
      if earlier states are kept (`archive`), else 0.
    - `signed`: whether the batches of the checkpoint are signed (`chain`), from some batch on.
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
    signed: bool = False
    version: int = VERSION

    @property
    def number(self) -> int:
        """Its place in the log. The next batch and the next owner both take the next number."""
        return self.batch + self.owner

    @property
    def was_cut_over(self) -> bool:
        """Whether the query was changed after its batch: then another one has made the batch."""
        return bool(self.changes) and int(self.changes[-1]["batch"]) > self.batch

    @property
    def instances(self) -> int:
        """The largest number of instances of a subquery."""
        return max(int(m["instances"]) for m in self.mappings.values())

    @property
    def epoch(self) -> int:
        """The largest epoch of a subquery."""
        return max(int(m["epoch"]) for m in self.mappings.values())

    @property
    def buckets(self) -> int:
        """The number of buckets of the query."""
        return max(len(m["owners"]) for m in self.mappings.values())

    def written_of(self, output: str) -> list[int]:
        """The newest batches that have rows for an output, newest first.

        A manifest without `written`, of an earlier version, counts all batches; one that has it,
        but not this output, counts none.
        """
        every = [batch for batch in (self.batch, self.batch - 1) if batch >= 0]
        return self.written.get(output, [] if self.written else every)

    def segments(self) -> tuple[Segment, ...]:
        """The live segments of all operators, operators by name."""
        return tuple(s for name in sorted(self.operators) for s in self.operators[name])

    def names(self) -> frozenset[str]:
        """The files that this state needs, relative to the root of the store."""
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
        """The manifest that `to_json` wrote; damage is a StateError that names `where`."""
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
    """Refuse a file of another version, before any of its members is read."""
    if version != VERSION:
        raise CheckpointError(
            where,
            f"must be of version {VERSION}",
            f"version {version}",
            "Run it with the Tidegate that wrote it, or start from an empty checkpoint.",
        )
