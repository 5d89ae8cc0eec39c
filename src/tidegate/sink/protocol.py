"""What a sink does for the driver, call by call, between the batches of a query and a place.

A sink belongs to one output of one run. These are the calls, in their order::

    open(opening)                        driver, once, before anything is written
    publish(batch, receipts)             driver, at a restart: the newest committed batch, again

    begin(batch) -> writer               driver, for every batch, before its tasks run
    writer.write(part, rows) -> receipt  tasks side by side, or the driver, for every part
    ---- commit: the manifest of the batch, with the receipts ----
    publish(batch, receipts)             driver, after the commit

    close()                              driver, once, whatever happened

Batches are numbered from 0 and come in order, one at a time. What is written is invisible and, when
`write` returns, durable; `publish` makes exactly the parts visible whose receipts it is given. The
commit is one atomic step between the two, so this is what a crash means:

- **before the commit**: the batch runs again. `begin` comes with the same number and must make away
  with what was written for it; the rows are the same, their division into parts may be another.
- **after the commit, before or within `publish`**: the next run opens the sink with this batch as
  the newest and calls `publish` with the same receipts. What was written must still be there.
- **after `publish`**: the same calls. What is published stays as it is; twice must be as once.
- **between two batches, or in `close`**: as after `publish`.

A task may be tried twice, and may outlive the driver that sent it: `write` of a part can happen
again, and at any time. So a part has to appear whole, a second try has to replace the first, and
`publish` must not show what no receipt names.

Each call says what it may raise. An exception of another type ends the run as well, but reaches the
user without a remedy.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    the newest batch that this query has committed, None for a run that begins. `owner` is the
    number of this run among those that had the checkpoint, greater than those of all before it: a
    name that has it is not written by the tasks, or by the driver, of another run.
    """

    schema: pa.Schema
    output: str | None
    newest: BatchId | None
    keep: Keep
    owner: int = 0


class PartWriter(Protocol):
    """Writes the parts of one batch of one output.

    That of a `parallel` sink is pickled into tasks, so it holds small plain values and opens what
    it needs itself. It is used by one thread of a process at a time.
    """

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        """Write a part so that it is durable and invisible, replacing an earlier try of it.

        The table is complete and in order, and may be empty. Raises SinkError: then the batch is
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

    def open(self, opening: Opening) -> None:
        """Check that results can be written, and go on from the newest committed batch.

        Nothing of the run exists yet, so a refusal should leave everything as it is. Raises
        OptionError for a place that cannot be used, or that has results of another run.
        """

    def begin(self, batch: BatchId) -> PartWriter:
        """Make away with what was written for this batch or any later one, and give its writer.

        Called also for batches without rows. Raises SinkError: the batch is not committed.
        """

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """Make these parts visible, all that the batch has, rows first and in their order.

        The batch is committed: it will not run again. Where parts were published before, nothing
        changes. Where one is neither published nor where its receipt says, it is lost, and that
        must be said. Raises SinkError: the run ends, and the next one begins with this call.
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
