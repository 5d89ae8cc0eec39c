"""Pathway: tables that its Rust engine keeps up to date, with the windows of `pw.temporal`.

Rows come in the order of their arrival from one connector, which commits after each cut. A window
is put out once, when a row is later than its end by what rows may be late by, as its guide advises
for late rows. Of results that change, those that stay are the answer.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pathway as pw
from pathway.internals.parse_graph import G

sys.path.insert(0, str(Path(__file__).parents[2]))

from determinism.answer import write_rows

_ALLOWED_MS, _TEN_MS, _FIVE_MS, _SECOND_MS = 10_000, 10_000, 5_000, 1_000
_ALL_AT_ONCE = 1_000_000
_TUMBLING = pw.temporal.tumbling(duration=_TEN_MS)
_SLIDING = pw.temporal.sliding(hop=_FIVE_MS, duration=_TEN_MS)


class Row(pw.Schema):
    ts: int
    k: str
    price: float
    qty: int
    number: int


class Arrivals(pw.io.python.ConnectorSubject):  # type: ignore[misc]
    """Rows of a file, `cut` in a commit."""

    def __init__(self, file: Path, cut: int) -> None:
        super().__init__()
        self._file, self._cut = file, cut

    def run(self) -> None:
        with self._file.open() as lines:
            for number, (ts, k, price, qty, id_) in enumerate(csv.reader(lines), 1):
                time = datetime.fromisoformat(ts).replace(tzinfo=UTC).timestamp()
                self.next(
                    ts=round(time * 1_000), k=k, price=float(price), qty=int(qty), number=int(id_)
                )
                if number % self._cut == 0:
                    self.commit()


Read = Callable[[str], Any]


def _windows(rows: Any, window: Any) -> Any:
    once = pw.temporal.exactly_once_behavior(shift=_ALLOWED_MS)
    return rows.windowby(rows.ts, window=window, instance=rows.k, behavior=once)


_OF = {"start": pw.this._pw_window_start, "end": pw.this._pw_window_end, "k": pw.this._pw_instance}


def sliding_avg(read: Read) -> Any:
    mean, n = pw.reducers.avg(pw.this.price), pw.reducers.count()
    return _windows(read("trades"), _SLIDING).reduce(**_OF, mean=mean, n=n)


def first_last(read: Read) -> Any:
    """Of prices of the same time the lowest is the first one, and the highest the last."""
    at = pw.make_tuple(pw.this.ts, pw.this.price)
    ends = {"first": pw.reducers.min(at), "last": pw.reducers.max(at)}
    found = _windows(read("trades"), _TUMBLING).reduce(**_OF, **ends)
    prices = {"first": pw.this.first[1], "last": pw.this.last[1]}
    return found.select(pw.this.start, pw.this.end, pw.this.k, **prices)


def join(read: Read) -> Any:
    trades, quotes = read("trades"), read("quotes")
    near = pw.temporal.interval(-_SECOND_MS, _SECOND_MS)
    joined = trades.interval_join(quotes, trades.ts, quotes.ts, near, trades.k == quotes.k)
    times = {"tts": trades.ts, "qts": quotes.ts}
    return joined.select(
        **times, t=trades.number, q=quotes.number, spread=trades.price - quotes.price
    )


def dedup(read: Read) -> Any:
    rows = read("trades")
    first = rows.deduplicate(
        value=rows.ts, instance=rows.number, acceptor=lambda new, old: new < old
    )
    return first.select(pw.this.ts, number=pw.this.number, price=pw.this.price)


def late(read: Read) -> Any:
    n, qty = pw.reducers.count(), pw.reducers.sum(pw.this.qty)
    return _windows(read("late"), _TUMBLING).reduce(**_OF, n=n, qty=qty)


def top(read: Read) -> Any:
    """The groups of a window are collected and sorted."""
    qty = pw.reducers.sum(pw.this.qty)
    sums = _windows(read("trades"), _TUMBLING).reduce(**_OF, qty=qty)
    ranked = pw.reducers.sorted_tuple(pw.make_tuple(-pw.this.qty, pw.this.k))
    windows = sums.groupby(sums.start).reduce(sums.start, ranked=ranked)
    best = pw.apply_with_type(lambda ranked: json.dumps(ranked[:2]), str, pw.this.ranked)
    return windows.select(pw.this.start, best=best)


QUERIES = {f.__name__: f for f in (sliding_avg, first_last, join, dedup, late, top)}


def run(job: dict[str, Any]) -> None:
    G.clear()
    os.environ["PATHWAY_THREADS"] = str(job["parallelism"])  # which each run reads
    arrived = Path(job["data"], job["arrival"].replace(" ", "-"))

    def read(stream: str) -> Any:
        source = Arrivals(arrived / f"{stream}.csv", job["cut"] or _ALL_AT_ONCE)
        return pw.io.python.read(source, schema=Row, autocommit_duration_ms=None)

    rows: dict[Any, list[Any]] = {}

    def changed(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if is_addition:
            rows[key] = list(row.values())
        elif rows.get(key) == list(row.values()):
            del rows[key]

    pw.io.subscribe(QUERIES[job["query"]](read), on_change=changed)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    write_rows(Path(job["out"]), rows.values())


if __name__ == "__main__":
    os.environ.setdefault("PATHWAY_TELEMETRY_SERVER", "")
    for each in json.loads(Path(sys.argv[1]).read_text()):
        run(each)
