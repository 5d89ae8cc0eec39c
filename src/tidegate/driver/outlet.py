"""Writes the rows of a batch to the sinks: stages them before the commit, publishes them after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tidegate.batch import BatchId, from_bytes
from tidegate.collect.order import OutputOrder
from tidegate.driver.checkpoint.replay import Replay
from tidegate.errors import LostOutputError, OptionError, near
from tidegate.execute.job import LATE, REJECTED, Outcome, Parcel
from tidegate.execute.runner import Outcomes
from tidegate.operate.port import Port
from tidegate.plan.physical import Plan, Target
from tidegate.sink.batch_output import BatchOutput, CountedParts
from tidegate.sink.digest.digest import Digest
from tidegate.sink.folder.batch_ledger import PublishedSink
from tidegate.sink.protocol import Opening, PartWriter, Preparing, Sink, Upserting
from tidegate.sink.receipt import Part, Receipt
from tidegate.sink.upsert import ChangeParts, check_key
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store


def collected(
    order: OutputOrder, number: int, port: Port, outcomes: Sequence[Outcome]
) -> BatchOutput:
    """The rows of an output in a batch, merged in order; without side outputs."""
    if any(o.receipts is not None for o in outcomes):
        tables = [o.pieces[number].load().select(port.schema.names) for o in outcomes]
        receipts = tuple(r for o in outcomes for r in o.receipts or ())
        return BatchOutput(pa.concat_tables(tables).cast(port.schema), receipts=receipts)
    return BatchOutput(port.merged(order, [o.pieces[number].load() for o in outcomes]))


def side_outputs(
    outcomes: Sequence[Sequence[Outcome]],
) -> tuple[dict[str, pa.Table], pa.Table | None]:
    """The late tuples by stream, and the rejected ones; in the order of their splits."""
    side: list[Parcel] = []
    for found in outcomes:
        side += sorted((p for o in found for p in o.side), key=lambda p: p.split)
    late: dict[str, list[pa.Table]] = {}
    for parcel in side:
        if parcel.kind == LATE:
            late.setdefault(parcel.label, []).append(from_bytes(parcel.data))
    rejected = [from_bytes(p.data) for p in side if p.kind == REJECTED]
    return (
        {name: pa.concat_tables(tables) for name, tables in sorted(late.items())},
        pa.concat_tables(rejected) if rejected else None,
    )


@dataclass(frozen=True)
class StagedBatch:
    """A batch that was written to the sinks but is not visible yet.

    `receipts` are those for the manifest: all parts of each output, side outputs after its rows.
    `places` are the URIs of sinks that have one. `digests` are of the rows of this batch alone.
    """

    outputs: tuple[BatchOutput, ...]
    receipts: Mapping[str, tuple[Mapping[str, Any], ...]]
    places: Mapping[str, str]
    digests: Mapping[str, Digest]


class Outlets:
    """The sinks of a query by output, and the part writers of the current batch."""

    def __init__(self, plan: Plan, sinks: Mapping[str | None, Sink], store: Store) -> None:
        self._plan = plan
        self._sinks = {target.name: sinks[target.name] for target in plan.targets}
        self._keys = {
            target.name: _checked_key(plan, target)
            for target in plan.targets
            if _upserts(sinks[target.name])
        }
        self._keep = StoreKeep(store)
        self._writers: dict[str | None, PartWriter] = {}
        self._replay: Replay | None = None
        self._batch = -1

    def sink_of(self, output: str | None) -> Sink:
        """The sink of an output; without a name, the only sink."""
        names = [name for name in self._sinks if name is not None]
        if output is None and not names:
            return self._sinks[None]
        if output not in names:
            got = "none" if output is None else output
            raise OptionError("output", "must be one of the query", got, near(got, names))
        return self._sinks[output]

    def open(self, manifest: Manifest | None, owner: int = 0, checkpoint: str = "") -> None:
        """Open every sink; `manifest` is the newest, or None before the first batch.

        `owner` is the number of this run, greater than those of all earlier runs of the checkpoint.
        `checkpoint` is the checkpoint's own id.
        """
        committed = None if manifest is None else BatchId(manifest.batch)
        for target in self._plan.targets:
            schema = self._plan.port(target.edge).schema
            written = [] if manifest is None else manifest.written_of(target.name or "")
            key = self._keys.get(target.name, ())
            opening = Opening(
                schema, target.name, committed, self._keep, owner, written, key, checkpoint
            )
            self._sinks[target.name].open(opening)

    def begin(self, batch: int, replay: Replay | None = None) -> None:
        """Get a part writer of every sink for a batch.

        If the batch runs again, a sink that lost nothing gets a writer that only counts: what it
        has stays.
        """
        self._batch, self._replay = batch, replay
        self._writers = {name: self._writer(name) for name in self._sinks}

    def _writer(self, name: str | None) -> PartWriter:
        if not self._takes_part(name):
            return CountedParts()
        writer = self._sinks[name].begin(BatchId(self._batch))
        return ChangeParts(writer, self._keys[name]) if name in self._keys else writer

    def for_tasks(self, target: Target | None) -> PartWriter | None:
        """The writer that tasks may use for the rows of an output; None if they may not write."""
        if target is None:
            return None
        parallel = self._sinks[target.name].parallel and target.name not in self._keys
        if self._takes_part(target.name) and not parallel:
            return None
        return self._writers[target.name]

    def stage(self, outcomes: Outcomes) -> StagedBatch:
        """Merge the rows of every output and write those that tasks have not written.

        The side outputs go to the first output's sink.
        """
        late, rejected = side_outputs(outcomes)
        outputs: list[BatchOutput] = []
        receipts, digests = {}, {}
        for target in self._plan.targets:
            subquery = self._plan.subqueries[target.edge.subquery]
            port = subquery.ports[target.edge.port]
            found = outcomes[target.edge.subquery]
            output = collected(subquery.operator.order, target.edge.port, port, found)
            if not outputs:
                output = replace(output, late=late, rejected=rejected)
            outputs.append(output)
            digests[target.name or ""] = output.digest()
            if self._replay is not None and not self._takes_part(target.name):
                receipts[target.name or ""] = self._replay.after.outputs.get(target.name or "", ())
                continue
            written = self._write(target.name, output)
            receipts[target.name or ""] = tuple(receipt.to_dict() for receipt in written)
        places = {
            name or "": sink.uri
            for name, sink in self._sinks.items()
            if isinstance(sink, PublishedSink)
        }
        return StagedBatch(tuple(outputs), receipts, places, digests)

    def publish(self, manifest: Manifest) -> None:
        """Make the committed batch visible; a LostOutputError if a staged part is gone."""
        for name in self._sinks:
            if self._takes_part(name):
                try:
                    self._publish(name, manifest)
                except LostOutputError as error:
                    again = "Run again: it is made once more, from the state before it."
                    raise LostOutputError(
                        error.where, error.requirement, error.got, again
                    ) from error
        self._replay = None

    def publish_again(self, manifest: Manifest) -> dict[str | None, LostOutputError]:
        """Make the newest batch visible in sinks that do not show it yet; called at a start.

        Returns the errors of outputs that lost parts.
        """
        lost = {}
        for name in self._sinks:
            try:
                self._publish(name, manifest)
            except LostOutputError as error:
                lost[name] = error
        return lost

    def close(self) -> None:
        for sink in self._sinks.values():
            sink.close()

    def _takes_part(self, name: str | None) -> bool:
        """Whether the current batch is written to an output."""
        return self._replay is None or name in self._replay.lost

    def _publish(self, name: str | None, manifest: Manifest) -> None:
        receipts = [Receipt.from_dict(r) for r in manifest.outputs.get(name or "", ())]
        if receipts:  # else the batch has nothing for this output
            self._sinks[name].publish(BatchId(manifest.batch), receipts)

    def _write(self, name: str | None, output: BatchOutput) -> Sequence[Receipt]:
        """Write the parts that no task has written; return the receipts of all parts.

        An output without rows gets no part for them.
        """
        writer, sink = self._writers[name], self._sinks[name]
        receipts = list(output.receipts or ())
        if output.receipts is None and output.rows.num_rows:
            receipts.append(writer.write(Part(), output.rows))
        if sink.side_outputs:
            for stream, table in output.late.items():
                receipts.append(writer.write(Part(side="late", stream=stream), table))
            if output.rejected is not None:
                receipts.append(writer.write(Part(side="rejected"), output.rejected))
        if receipts and isinstance(sink, Preparing):
            return sink.prepare(BatchId(self._batch), receipts)
        return receipts


def _upserts(sink: Sink) -> bool:
    return isinstance(sink, Upserting) and sink.upserts


def _checked_key(plan: Plan, target: Target) -> tuple[str, ...]:
    """The key by which a sink upserts the rows of an output; an error if the output has none."""
    where = "sink" if target.name is None else f"sink of {target.name}"
    check_key(where, plan.port(target.edge).schema, target.key.names, target.key.lack)
    return target.key.names


class StoreKeep:
    """The files of sinks in the checkpoint. Their names begin with the number of their batch, so
    that `Store.clean` spares them while that batch is the newest."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def write(self, batch: BatchId, name: str, data: bytes) -> None:
        self._store.write(_staged(batch, name), data)

    def read(self, batch: BatchId, name: str) -> bytes | None:
        staged = _staged(batch, name)
        return self._store.read(staged) if self._store.has(staged) else None

    def delete(self, batch: BatchId, name: str) -> None:
        self._store.delete(_staged(batch, name))


def _staged(batch: int, name: str) -> str:
    return f"staged/{batch:08d}-{name}"
