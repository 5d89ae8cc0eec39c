"""Divides the windows of a stream without groups between the owners before and after a switch.

Each tuple of such a stream has a rank, and a window begins at every slide-th rank. So the number of
tuples that have come says where windows begin; the state is not needed (UniMiCo, equation 4.2). Let
C tuples have come at the switch. The former owner finishes the windows that begin below rank C. The
last of them begins at C - delta, where delta is C modulo the slide, or the slide if that is 0. The
new owner begins with the next window, and skips the slide - delta tuples before it. Both get all
tuples until the former owner's last window is full; the new owner stores them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US, ints
from tidegate.operate.operator import InstanceWork, MapWork, Migration, Share
from tidegate.operate.tuple_window.spec import TupleSpec
from tidegate.operate.tuple_window.state import TUPLES, read_ranks
from tidegate.operate.tuple_window.window import filled, in_order, stored_tuples
from tidegate.route.former_owner import Position
from tidegate.state.segment.segment import Segment

_TAIL = "tail of the stream"
BUCKET = 0
"""The bucket of tuples without a key."""


def migration_of(
    spec: TupleSpec,
    frontier_us: int,
    state: Mapping[str, Sequence[Segment]],
    counts: Mapping[str, int],
) -> Migration | None:
    """The times and the position of a switch; None where no window is open.

    All tuples below the frontier have come, so the new owner gets those from the frontier on.
    """
    count = counts.get(TUPLES, 0)
    if frontier_us == MIN_US or not count or not state.get(TUPLES):
        return None
    over = count - _delta(count, spec.slide) + spec.rows
    if over <= count:
        return None
    return Migration(frontier_us, frontier_us, (Position(TUPLES, count, over),))


def _delta(count: int, slide: int) -> int:
    """How many tuples of the former owner's last window have come."""
    return count % slide or slide


def shares_of(work: MapWork, tuples: pa.Table) -> list[Share]:
    """Send all tuples to the owner and to each former owner."""
    return [Share(i, tuples) for i in sorted(set(work.mapping.tenures[:, BUCKET].tolist()))]


def advance_by_tenure(
    spec: TupleSpec, work: InstanceWork, before: int, news: pa.Table | None
) -> tuple[pa.Table, pa.Table]:
    """The windows of this instance that new tuples fill, and the tuples that it stores.

    `before` is how many tuples came in earlier batches. The instance has the ones that it needs in
    memory from the batch before, or reads them.
    """
    spans = list(_spans(spec, work))
    since = min((first for first, _ in spans), default=MAX_US)
    held = work.kept.take(_TAIL)
    if held is None:
        held = read_ranks(work, spec, BUCKET, since)
    results = [spec.result_schema.empty_table()]
    state = spec.state_schema.empty_table()
    if news is not None:
        news = in_order(news)
        state = stored_tuples(spec, news, before + np.arange(news.num_rows))
        done, due = (int(n) for n in spec.emitted(np.array([before, before + news.num_rows])))
        for first, last in spans:
            windows = max(done, -(-first // spec.slide)), min(due, -(-last // spec.slide))
            results.append(filled(spec, held, state, *windows))
        held = _needed(spec, pa.concat_tables([held, state]), max(since, due * spec.slide))
    work.kept.leave(_TAIL, held, held.nbytes)
    stores = work.mapping.owners[BUCKET] == work.instance
    return pa.concat_tables(results), state if stores else state.slice(0, 0)


def _spans(spec: TupleSpec, work: InstanceWork) -> Iterator[tuple[int, int]]:
    """Give the ranges of ranks at which windows of this instance begin: first, and end."""
    ends = [former.until(TUPLES) for former in work.mapping.formers]
    bounds = zip([0, *ends], [*ends, MAX_US - spec.slide], strict=True)
    for owner, span in zip(work.mapping.tenures[:, BUCKET], bounds, strict=True):
        if owner == work.instance:
            yield span


def _needed(spec: TupleSpec, rows: pa.Table, since: int) -> pa.Table:
    return rows.filter(pa.array(ints(rows, "rank") >= since)).combine_chunks()
