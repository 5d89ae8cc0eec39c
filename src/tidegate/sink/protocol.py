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

Batches are numbered from 0 and come in order, one at a time. Where a batch has neither rows nor
side outputs for a sink, no call follows `begin`. Written parts are invisible. When `write` returns
their bytes are durable; when `prepare` returns their names are too. `publish` makes visible exactly
the parts whose receipts it gets. The commit is one atomic step in between, so a crash means:

- **before the commit**: the batch runs again. `begin` comes with the same number. The rows are the
  same if the options are; they may be divided into other parts.
- **after the commit, before or within `publish`**: the next run opens the sink with this batch as
  the newest and calls `publish` with the same receipts. The written parts must still be there.
- **after `publish`**: the same calls. Published parts never change, so a second `publish` must do
  nothing.
- **between two batches, or in `close`**: as after `publish`.

Between the commit and `publish` a disk or a person can lose or damage a part. So `publish` compares
the parts with their receipts: always the sizes, and the checksums of parts that another process has
written. It shows no part that differs, and raises LostOutputError. Within a run this ends the run.
At the next start the batch runs again, from the state before it to exactly where it ended. Sinks
that have lost something get `begin`, `write` and `publish` with the same rows. Other sinks, which
may have published already, are left out and keep what they have.

A task may be tried twice and may outlive the driver that sent it. A driver may be paused and wake
up when another has taken over. So `write` of a part can happen again, and at any time. A writer
must never overwrite what another one has written: names carry `Opening.owner`, which differs for
each run, and something unique to the try. Only parts that receipts name count. `begin`, `publish`
and `close` remove what earlier tries and runs have left, and nothing that a later owner has
written.

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

    Bytes stay until the sink deletes them; at a restart at least those of the newest committed
    batch are there. Calls raise StateError where the checkpoint cannot be used. The sink chooses
    the names; two outputs of a query must not use the same ones.
    """

    def write(self, batch: BatchId, name: str, data: bytes) -> None:
        """Keep bytes, whole or not at all; a second call replaces them."""

    def read(self, batch: BatchId, name: str) -> bytes | None:
        """The bytes; None where there are none."""

    def delete(self, batch: BatchId, name: str) -> None:
        """Delete the bytes; does nothing where there are none."""


@dataclass(frozen=True)
class Opening:
    """What a sink learns at the start of a run.

    - `output`: the name of its output, None where the query has only one.
    - `newest`: the newest batch that this query has committed, None for a new query.
    - `written`: the newest two batches of which this output has something, newest first; None where
      every batch has.
    - `owner`: the number of this run among all runs of the checkpoint, greater than those of all
      earlier ones. Neither tasks nor drivers of other runs write names that carry it.
    - `key`: the columns that tell rows apart, for a sink that is `Upserting`.
    - `checkpoint`: an id that no other checkpoint has, for a place that others write to as well.
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
        """`written`, with the newest two batches where it is None."""
        if self.newest is None or self.written is not None:
            return self.written or ()
        return self.newest, self.newest - 1


class PartWriter(Protocol):
    """Writes the parts of one batch of one output.

    Writers of a `parallel` sink are pickled into tasks. So they hold small plain values, and open
    what they need themselves. One thread of a process uses a writer at a time.
    """

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        """Write a part, durable and invisible, whether or not it was written before.

        `rows` is the whole part, in order, and not empty. Raises SinkError: then the batch is not
        committed, and the run ends.
        """


@runtime_checkable
class Sink(Protocol):
    """A place for one output of a query. The module docstring gives the order of the calls."""

    parallel: bool
    """Whether tasks may write parts. If so, its writers must pickle and work on any host that runs
    tasks. If not, the driver collects all rows of a batch and writes them as part 0."""

    side_outputs: bool
    """Whether late and rejected tuples come here too; if not they are only counted. Of several
    outputs the first one gets them."""

    @property
    def uri(self) -> str | None:
        """The name of the place in lineage; never with credentials.

        None where only this process has the results. May be read at any time, also before `open`.
        """

    def open(self, opening: Opening) -> None:
        """Check that results can be written, and continue after the newest committed batch.

        The run has made nothing yet, so a refusal should change nothing. Raises OptionError for a
        place that cannot be used, or that has results of another run.
        """

    def begin(self, batch: BatchId) -> PartWriter:
        """Remove what failed tries have left, and return a writer for this batch.

        What is committed and not published must stay. Called also for batches without rows, and
        again for a batch that failed. Raises SinkError: the batch is not committed.
        """

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """Make these parts visible. They are all that the batch has; rows come first, in order.

        Does nothing for parts that are published already. Raises LostOutputError where a part is
        neither published nor as its receipt says: the batch runs again at the next start. Raises
        SinkError for everything else: the run ends, and the next one begins with this call.
        """

    def close(self) -> None:
        """Release what is held open. May come without `open`, and more than once."""


@runtime_checkable
class Preparing(Protocol):
    """A sink that has work to do once all parts of a batch are written; most have none."""

    def prepare(self, batch: BatchId, receipts: Sequence[Receipt]) -> Sequence[Receipt]:
        """Make durable, for all parts at once, what `write` has left undone, such as file names.

        The driver calls it once, after the last `write` and before the commit. `publish` gets the
        receipts that it returns. Raises SinkError: the batch is not committed.
        """


@runtime_checkable
class Upserting(Protocol):
    """A sink that keeps only the newest row of each key, where `upserts` is true.

    The driver writes its rows, whatever `parallel` says: one part for each batch, with each key
    once. The last column, `upsert.OP`, says what to do with the key. A query whose rows have no key
    is refused before the sink is opened.
    """

    upserts: bool


@runtime_checkable
class Formatted(Protocol):
    """A sink, or a class of sinks, that writes in a format of the user's choice."""

    formats: Sequence[str]
    """Those it has, the usual one first."""


@runtime_checkable
class SidePlaces(Protocol):
    """A sink whose late and rejected rows are not in folders beside the results."""

    side_places: Mapping[str, str]
    """What the summary of a run says about `late` and `rejected` rows, by these names."""
