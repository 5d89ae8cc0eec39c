"""The interface of sinks, call by call: when the driver calls, and what a crash in between means.

A sink belongs to one output of one run. These are the calls, in their order::

    open(opening)                         driver, once, before anything is written
    publish(batch, receipts)              driver, at a restart: the newest committed batch, again

    begin(batch) -> writer                driver, for every batch, before its tasks run
    writer.write(part, rows) -> receipt   tasks side by side, or the driver, for every part
    prepare(batch, receipts) -> receipts  driver, when all are written; only where there is one
    ---- commit: the manifest of the batch, with the receipts ----
    publish(batch, receipts)              driver, after the commit

    close()                               driver, once, whatever happened

Batches are numbered from 0 and come in order, one at a time. Where one has neither rows nor side
outputs for a sink, nothing comes after `begin`. What is written is invisible; when `write` returns
its bytes are durable, and when `prepare` returns so is the way to them. `publish` makes exactly the
parts visible whose receipts it is given. The commit is one atomic step between the two, so this is
what a crash means:

- **before the commit**: the batch runs again. `begin` comes with the same number; the rows are the
  same if the options are, their division into parts may be another.
- **after the commit, before or within `publish`**: the next run opens the sink with this batch as
  the newest and calls `publish` with the same receipts. What was written must still be there.
- **after `publish`**: the same calls. What is published stays as it is; twice must be as once.
- **between two batches, or in `close`**: as after `publish`.

Between the commit and `publish` a part can be lost or damaged: by a disk, by a person. So `publish`
compares what it finds with its receipts, at least the sizes, and the checksums of what another
process has written. What is not as it was it does not show, and raises LostOutputError. At a
restart the batch then runs again, from the state before it to exactly where it ended: the sinks
that have lost something get `begin`, `write` and `publish` with the rows they had; the others, of
which some may have published, are left out and keep what they have. In a run, the run ends.

A task may be tried twice, and may outlive the driver that sent it; a driver may be paused, and go
on when another has taken over. So `write` of a part can happen again, and at any time. A writer
must not write over what another has written: names carry `Opening.owner`, which is another for
each run, and something of the try. Only what receipts name counts. What is left of earlier tries
and runs is removed by `begin`, `publish` or `close`; what a later owner has written is not.

Each call says what it may raise. An exception of another type ends the run as well, but reaches the
user without a remedy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa

from tidegate.batch import BatchId
from tidegate.sink.receipt import Part, Receipt


class Keep(Protocol):
    """Durable bytes by batch and name, in the checkpoint: for a sink whose place cannot stage.

    They are kept until the sink deletes them, and at a restart at least those of the newest
    committed batch are there. Calls raise StateError where the checkpoint cannot be used. Names are
    the sink's own; two outputs of a query do not share them.
    """

    def write(self, batch: BatchId, name: str, data: bytes) -> None:
        """Keep bytes, whole or not at all; a second time replaces them."""

    def read(self, batch: BatchId, name: str) -> bytes | None:
        """What was kept, or None."""

    def delete(self, batch: BatchId, name: str) -> None:
        """Let go of what was kept, if it was."""


@dataclass(frozen=True)
class Opening:
    """What a sink is told at the start of a run.

    `output` is the name of the output it is for, None where the query has only one. `newest` is
    the newest batch that this query has committed, None for a run that begins; `written` has those
    of which this output has something, the newest two, newest first, or None where each has.
    `owner` is the number of this run among those that had the checkpoint, greater than those of all
    before it: a name that has it is not written by the tasks, or by the driver, of another run.
    `key` are the columns that tell rows apart, for a sink that is `Upserting`. `checkpoint` tells
    this checkpoint from all others, for a place that others write to as well.
    """

    schema: pa.Schema
    output: str | None
    newest: BatchId | None
    keep: Keep
    owner: int = 0
    written: Sequence[int] | None = None
    key: tuple[str, ...] = ()
    checkpoint: str = ""

    @property
    def results(self) -> Sequence[int]:
        """The newest two batches of which this output has something, newest first."""
        if self.newest is None or self.written is not None:
            return self.written or ()
        return self.newest, self.newest - 1


class PartWriter(Protocol):
    """Writes the parts of one batch of one output.

    That of a `parallel` sink is pickled into tasks, so it holds small plain values and opens what
    it needs itself. It is used by one thread of a process at a time.
    """

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        """Write a part so that its bytes are durable and invisible, whatever was written before.

        The table is complete and in order, and has rows. Raises SinkError: then the batch is
        not committed, and the run ends.
        """


@runtime_checkable
class Sink(Protocol):
    """A place for one output of a query. The module says in which order it is called."""

    parallel: bool
    """Whether tasks may write parts: the writers can be pickled, and work on any host that runs
    tasks. If not, all rows of a batch come to the driver, which writes them as part 0."""

    side_outputs: bool
    """Whether late and rejected tuples come here too; without it they are only counted. Of several
    outputs the first one gets them."""

    @property
    def uri(self) -> str | None:
        """What names the place of this output for others, in lineage; never with credentials.

        None where only this process has the results. Asked at any time, also before `open`.
        """

    def open(self, opening: Opening) -> None:
        """Check that results can be written, and go on from the newest committed batch.

        Nothing of the run exists yet, so a refusal should leave everything as it is. Raises
        OptionError for a place that cannot be used, or that has results of another run.
        """

    def begin(self, batch: BatchId) -> PartWriter:
        """Make away with what this run and those before it have left, and give a writer.

        But for what is committed and not published. Called also for batches without rows, and again
        for a batch that failed. Raises SinkError: the batch is not committed.
        """

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """Make these parts visible, all that the batch has, rows first and in their order.

        Where parts were published before, nothing changes. Raises LostOutputError where one is
        neither published nor where, and as, its receipt says: the batch runs again at the next
        start. Raises SinkError for all else: the run ends, and the next one begins with this call.
        """

    def close(self) -> None:
        """Let go of what is held open. May come without `open`, and more than once."""


@runtime_checkable
class Preparing(Protocol):
    """A sink that has something to do when all parts of a batch are written; most have not."""

    def prepare(self, batch: BatchId, receipts: Sequence[Receipt]) -> Sequence[Receipt]:
        """Make durable what `write` has left to do for all parts at once, such as their names.

        The driver calls it once, after the last `write` and before the commit, and what it returns
        is what `publish` is told. Raises SinkError: the batch is not committed.
        """


@runtime_checkable
class Upserting(Protocol):
    """A sink that keeps only the newest row of each key, where `upserts` is true.

    The driver writes its rows, whatever `parallel` says, in one part of each batch, which has each
    key once. Their last column is `upsert.OP`: what is to be done with the key. A query whose rows
    have no key is refused before anything is opened.
    """

    upserts: bool


@runtime_checkable
class Formatted(Protocol):
    """A sink, or a class of sinks, that writes in a format of the user's choice."""

    formats: Sequence[str]
    """Those it has, the usual one first."""


@runtime_checkable
class SidePlaces(Protocol):
    """A sink that has late and rejected rows elsewhere than in folders beside the results."""

    side_places: Mapping[str, str]
    """By `late` and `rejected` what becomes of them, for the summary of a run."""
