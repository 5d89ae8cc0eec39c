"""Merges and writes a large output in parts, so that no process holds all of its rows.

A part has the rows of all instances between two event times. Parts can therefore be merged and
written independently, one after another or side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US
from tidegate.cancellation import between_pieces
from tidegate.execute.job import Job, Outcome, Piece
from tidegate.execute.within_memory import within_memory
from tidegate.operate.port import Port
from tidegate.sink.digest.digest import Digest
from tidegate.sink.receipt import Part
from tidegate.spans import added

PART_ROWS = 1_000_000
"""About how many rows a part has."""

SHOWN_ROWS = 20
"""The number of rows of a written part that go back to the driver, to be shown."""

_SAMPLES = 1000


def cuts_of(job: Job, outcomes: Sequence[Outcome], parts: int) -> list[int]:
    """The event times that divide an output into `parts` parts, chosen from a sample of its rows.

    Fewer times if rows have few distinct ones: rows of one instant are never divided.
    """
    (port,) = job.subquery.ports
    some = [times for outcome in outcomes for times in _sample(port, outcome.pieces[0])]
    sample = np.sort(np.concatenate(some))
    cuts = sample[np.arange(1, parts) * len(sample) // parts]
    return [int(c) for c in np.unique(cuts) if c > sample[0]]


def write_part(job: Job, outcomes: Sequence[Outcome], cuts: Sequence[int], number: int) -> Outcome:
    """Merge and write part `number`: the rows before `cuts[number]`, or after the last cut."""
    with within_memory(f"{job.subquery.name}, writing its rows"):
        between_pieces()
        return _written_part(job, outcomes, cuts, number)


@dataclass(frozen=True)
class PartTask:
    """Writes a part of a large output, given its number; pickled for tasks that share no files.

    The rows of `outcomes` must be where all tasks can read them.
    """

    job: Job
    outcomes: Sequence[Outcome]
    cuts: Sequence[int]

    def __call__(self, number: int) -> Outcome:
        return write_part(self.job, self.outcomes, self.cuts, number)


def _written_part(
    job: Job, outcomes: Sequence[Outcome], cuts: Sequence[int], number: int
) -> Outcome:
    assert job.parts is not None
    (port,) = job.subquery.ports
    pieces = []
    span = [MIN_US, *cuts, MAX_US][number : number + 2]
    for outcome in outcomes:
        rows = outcome.pieces[0].load(*span)
        times = _times(port, rows)
        low = _place(times, cuts[number - 1]) if number else 0
        high = _place(times, cuts[number]) if number < len(cuts) else len(times)
        pieces.append(rows.slice(low, high - low))
    whole = port.merged(job.operator.order, pieces)
    written = job.parts.write(Part(number), whole)
    receipt = replace(written, digest=Digest.of(whole).text)
    last = whole.slice(max(whole.num_rows - SHOWN_ROWS, 0))
    shown = Piece(last.num_rows, 0, 0, pa.table(last.to_pydict(), schema=last.schema))
    return Outcome(number, (shown,), receipts=(receipt,))


def written(job: Job, outcomes: Sequence[Outcome], parts: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes of the instances after all their rows were written in these parts.

    Their pieces are empty; the first has the receipts of all parts and the last rows.
    """
    (port,) = job.subquery.ports
    nothing = Piece.of(port, port.schema.empty_table())
    bare = [replace(o, pieces=(nothing,), receipts=()) for o in outcomes]
    receipts = tuple(r for p in parts for r in p.receipts or ())
    spent = added([bare[0].spans_ms, *(p.spans_ms for p in parts)])
    first = replace(bare[0], pieces=parts[-1].pieces, receipts=receipts, spans_ms=spent)
    return [first, *bare[1:]]


def _sample(port: Port, piece: Piece) -> list[npt.NDArray[np.int64]]:
    """A sample of the rows' times, in one or several arrays."""
    if piece.remote is not None:
        return list(piece.remote.sample())
    times = _times(port, piece.load())
    return [chunk.to_numpy()[:: max(len(times) // _SAMPLES, 1)] for chunk in times.chunks]


def _times(port: Port, rows: pa.Table) -> pa.ChunkedArray:
    times = rows.column(port.time)
    return pa.chunked_array([chunk.view(pa.int64()) for chunk in times.chunks], pa.int64())


def _place(times: pa.ChunkedArray, time_us: int) -> int:
    """The index of the first time that is `time_us` or later; `times` ascend; copies nothing."""
    place = 0
    for chunk in times.chunks:
        if len(chunk) and chunk[-1].as_py() >= time_us:
            return place + int(np.searchsorted(chunk.to_numpy(), time_us))
        place += len(chunk)
    return place
