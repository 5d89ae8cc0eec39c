"""Merges and writes a large output in parts, so that nobody holds all of its rows.

A part has what lies between two event times, of all instances, so that parts can be merged and
written one by one or side by side, and no one holds all rows.
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
from tidegate.sink.digest import Digest
from tidegate.sink.receipt import Part
from tidegate.spans import added

PART_ROWS = 1_000_000
"""About how many rows a part has."""

SHOWN_ROWS = 20
"""How many rows of a part that is written the driver is shown."""

_SAMPLES = 1000


def cuts_of(job: Job, outcomes: Sequence[Outcome], parts: int) -> list[int]:
    """The event times at which an output is divided into so many parts; fewer where all have one.

    They are chosen by some rows of each instance.
    """
    (port,) = job.subquery.ports
    some = [times for outcome in outcomes for times in _sample(port, outcome.pieces[0])]
    sample = np.sort(np.concatenate(some))
    cuts = sample[np.arange(1, parts) * len(sample) // parts]
    return [int(c) for c in np.unique(cuts) if c > sample[0]]


def write_part(job: Job, outcomes: Sequence[Outcome], cuts: Sequence[int], number: int) -> Outcome:
    """Merge and write the part before the cut of this number, or after the last one."""
    with within_memory(f"{job.subquery.name}, writing its rows"):
        between_pieces()
        return _written_part(job, outcomes, cuts, number)


@dataclass(frozen=True)
class PartTask:
    """Writes a part of a large output by its number; pickled, where tasks share no files.

    `outcomes` have rows that all tasks can reach.
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
    """The outcomes of instances whose rows are in these parts, all of them, in their order."""
    (port,) = job.subquery.ports
    nothing = Piece.of(port, port.schema.empty_table())
    bare = [replace(o, pieces=(nothing,), receipts=()) for o in outcomes]
    receipts = tuple(r for p in parts for r in p.receipts or ())
    spent = added([bare[0].spans_ms, *(p.spans_ms for p in parts)])
    first = replace(bare[0], pieces=parts[-1].pieces, receipts=receipts, spans_ms=spent)
    return [first, *bare[1:]]


def _sample(port: Port, piece: Piece) -> list[npt.NDArray[np.int64]]:
    """Some times of the rows, in one or several arrays."""
    if piece.remote is not None:
        return list(piece.remote.sample())
    times = _times(port, piece.load())
    return [chunk.to_numpy()[:: max(len(times) // _SAMPLES, 1)] for chunk in times.chunks]


def _times(port: Port, rows: pa.Table) -> pa.ChunkedArray:
    times = rows.column(port.time)
    return pa.chunked_array([chunk.view(pa.int64()) for chunk in times.chunks], pa.int64())


def _place(times: pa.ChunkedArray, time_us: int) -> int:
    """The place of the first time that is not below this one; chunk by chunk, without a copy."""
    place = 0
    for chunk in times.chunks:
        if len(chunk) and chunk[-1].as_py() >= time_us:
            return place + int(np.searchsorted(chunk.to_numpy(), time_us))
        place += len(chunk)
    return place
