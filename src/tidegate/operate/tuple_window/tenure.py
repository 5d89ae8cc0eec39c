"""Divides the windows of a stream without groups between the owners before a switch and after it.

All tuples of such a stream have one number each, their rank, and windows begin at every slide-th:
so where a window begins can be told from how many tuples have come, without the state (UniMiCo,
equation 4.2). With C tuples at the switch, the former owner finishes the windows that begin below
rank C, the last of which begins at C - delta, where delta is C modulo the slide, or the slide; the
new owner begins with the next one, and leaves out the slide - delta tuples before it. Both get the
tuples until the last window of the former owner is full, and the new one stores them.
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
from tidegate.route.former import Position
from tidegate.state.segment import Segment

_TAIL = "tail of the stream"
BUCKET = 0
"""The bucket of tuples without a key."""


def migration_of(
    spec: TupleSpec,
    frontier_us: int,
    state: Mapping[str, Sequence[Segment]],
    counts: Mapping[str, int],
) -> Migration | None:
    """Tuples from the frontier on are new; where no window is open there is nothing to finish."""
    count = counts.get(TUPLES, 0)
    if frontier_us == MIN_US or not count or not state.get(TUPLES):
        return None
    over = count - _delta(count, spec.slide) + spec.rows
    if over <= count:
        return None
    return Migration(frontier_us, frontier_us, (Position(TUPLES, count, over),))


def _delta(count: int, slide: int) -> int:
    """How many tuples before the next one the last window of the former owner begins."""
    return count % slide or slide


def shares_of(work: MapWork, tuples: pa.Table) -> list[Share]:
    """All tuples for the owner and for each former owner."""
    return [Share(i, tuples) for i in sorted(set(work.mapping.tenures[:, BUCKET].tolist()))]


def advance_by_tenure(
    spec: TupleSpec, work: InstanceWork, before: int, news: pa.Table | None
) -> tuple[pa.Table, pa.Table]:
    """The windows of this instance that new tuples fill, and the tuples that it stores.

    `before` is how many tuples came in earlier batches. What the instance needs of them it has in
    memory from the batch before, or reads.
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
    """The ranks that begin windows of this instance: from one up to before another."""
    ends = [former.until(TUPLES) for former in work.mapping.formers]
    bounds = zip([0, *ends], [*ends, MAX_US - spec.slide], strict=True)
    for owner, span in zip(work.mapping.tenures[:, BUCKET], bounds, strict=True):
        if owner == work.instance:
            yield span


def _needed(spec: TupleSpec, rows: pa.Table, since: int) -> pa.Table:
    return rows.filter(pa.array(ints(rows, "rank") >= since)).combine_chunks()
