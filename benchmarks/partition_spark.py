"""What partitioners do to the latency of windows on Spark, with two instances.

Replayed streams: a batch has the tuples of one window and closes the one before it, so what a batch
takes is the dissertation's window latency, the time it takes to process the tuples of a window.

A stream of which one key has 60 percent, and an aggregate of one's own that takes microseconds for
a tuple: replayed in the same way, and live, from when the tuple is due that lets a window close to
when its rows are published, as seen from outside. Its rate is such that folding alone keeps one
core busy for a part of the time: with `hash` the task that reads a source folds its tuples, all on
that core.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from data import START_US
from huber import HuberLocation
from measure import CORES, MASTER, middle
from partition_streams import GENERATED, SKEWED, Case, Window, windows_of
from published import generators_begun, published_ms

NAMES = ("hash", "shuffle", "pk", "cam", "auto")
SKEW_NAMES = ("hash", "shuffle", "cam", "auto")
WINDOW_ROWS, WINDOWS, SETTLED = 100_000, 7, 3
"""Batches of a replay, and how many of them are before those that count."""
RANGE_MS, LIVE_S, WARM_S = 500, 9, 4
"""Of the live stream: its windows, and how long it lasts; what comes while it starts, waits."""
LOAD = 0.6
ROBUST = HuberLocation(low=2.5, high=66.5, reach=4.0, candidates=512)
QUERY = """
CREATE STREAM s FROM '{uri}' TIME {time};
SELECT {keys}, COUNT(*) AS n, AVG({value}) AS mean FROM s [RANGE 1 SECOND] GROUP BY {keys};
"""


def replayed(session: Any, case: Case, partitioner: str, rows: int, work: Path) -> float:
    """The median milliseconds of a batch of a cheap aggregate."""
    text = QUERY.format(
        uri=_of_a_second(case, rows), time=case.time, keys=", ".join(case.keys), value=case.value
    )
    return _batch_ms(session.sql(text), partitioner, rows, work)


def replayed_costly(session: Any, partitioner: str, rows: int, work: Path) -> float:
    """The same of the skewed stream and the costly aggregate."""
    stream = session.stream(_of_a_second(SKEWED, rows), time=SKEWED.time)
    return _batch_ms(_robust(stream.window("1 second")), partitioner, rows, work)


def _of_a_second(case: Case, rows: int) -> str:
    """A stream with so many tuples in a second, and as many seconds as a replay has windows."""
    return case.uri(f"rows={rows * WINDOWS}&rate={rows}")


def _robust(windows: Any) -> Any:
    import tidegate as tg

    return windows.group_by(*SKEWED.keys).agg(n=tg.count(), fare=tg.aggregate(ROBUST, SKEWED.value))


def _batch_ms(query: Any, partitioner: str, rows: int, work: Path) -> float:
    """The median milliseconds of a batch, of those after the first ones and before the last."""
    import tidegate as tg

    folder = _emptied(work)
    reports = (
        query.start(
            sink=tg.sink.files(str(folder / "out")),
            checkpoint=str(folder / "checkpoint"),
            batch_rows=rows,
            instances=CORES,
            partitioner=partitioner,
        )
        .wait()
        .reports
    )
    return float(np.median([r.seconds * 1e3 for r in reports][SETTLED : WINDOWS - 1]))


def live(session: Any, partitioner: str, rate: int, seconds: int, work: Path) -> list[float]:
    """The latencies of windows in milliseconds, after the first ones."""
    import tidegate as tg

    uri = SKEWED.uri(f"pace={rate}&rows={rate * seconds}&start=2024-01-01T00:00:00Z")
    query = _robust(session.stream(uri, time=SKEWED.time).window(f"{RANGE_MS} milliseconds"))
    folder = _emptied(work)
    with generators_begun() as begun:
        query.start(
            sink=tg.sink.files(str(folder / "out")),
            checkpoint=str(folder / "checkpoint"),
            instances=CORES,
            partitioner=partitioner,
        ).wait()
    first_us = START_US + WARM_S * 1_000_000
    found = published_ms(folder / "out", "window_end", begun[-1], first_us, seconds - WARM_S)
    return [float(ms) for ms in found]


def _emptied(work: Path) -> Path:
    folder = work / "run"
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def robust_tuple_s() -> float:
    """What a tuple of the skewed stream costs to fold, the least of some rounds."""
    window: Window = next(windows_of(SKEWED, None, 20_000, 1))
    codes, found = window.codes, []
    for _ in range(5):
        began = time.process_time()
        ROBUST.fold(ROBUST.init(window.groups), codes, window.values)
        found.append(time.process_time() - began)
    return min(found) / window.rows


def replays(rounds: int, rows: int, only: str, work: Path) -> dict[str, Any]:
    """All streams with all partitioners, which take turns."""
    import tidegate as tg

    session = tg.Session(master=MASTER)
    cases = [case for case in GENERATED if only in case.name]
    for name in NAMES:
        replayed(session, cases[0], name, 1_000, work)  # what starts or is compiled with a query
    found: dict[str, Any] = {}
    for case in cases:
        runs: dict[str, list[float]] = {name: [] for name in NAMES}
        for _ in range(rounds):
            for name in NAMES:
                runs[name].append(replayed(session, case, name, rows, work))
        found[case.name] = {name: middle(ms) for name, ms in runs.items()}
    return found


def skew(rounds: int, load: float, rows: int, work: Path) -> dict[str, Any]:
    """The skewed stream replayed and live with all partitioners, which take turns."""
    import tidegate as tg

    tuple_s = robust_tuple_s()
    rate = max(round(load / tuple_s / 1_000), 1) * 1_000
    session = tg.Session(master=MASTER)
    for name in SKEW_NAMES:
        live(session, name, 1_000, WARM_S, work)  # what starts or is compiled with the first query
    runs: dict[str, list[list[float]]] = {name: [] for name in SKEW_NAMES}
    batches: dict[str, list[float]] = {name: [] for name in SKEW_NAMES}
    for _ in range(rounds):
        for name in SKEW_NAMES:
            batches[name].append(replayed_costly(session, name, rows, work))
            runs[name].append(live(session, name, rate, LIVE_S, work))
    medians = {name: [float(np.median(run)) for run in found] for name, found in runs.items()}
    return {
        "replayed_ms": {name: middle(found) for name, found in batches.items()},
        "hash_takes_longer": _beside_hash(batches),
        "load": load,
        "tuple_us": tuple_s * 1e6,
        "rate": rate,
        "window_ms": RANGE_MS,
        "latency_ms": {name: middle(found) for name, found in medians.items()},
        "hash_is_slower": _beside_hash(medians),
        "runs_ms": runs,
    }


def _beside_hash(found: dict[str, list[float]]) -> dict[str, Any]:
    """How many times as long `hash` took, round by round."""
    return {
        name: middle([a / b for a, b in zip(found["hash"], one, strict=True)])
        for name, one in found.items()
    }


def table(report: dict[str, Any]) -> Iterator[str]:
    """Replayed windows by stream, in Markdown."""
    found = report["replayed"]
    yield f"With {report['window_rows']:,} tuples in a window, rounds: {report['rounds']}."
    yield ""
    names = list(next(iter(found.values())))
    yield "| stream | " + " | ".join(f"`{name}`" for name in names) + " |"
    yield "|---|" + "---|" * len(names)
    for case, by_name in found.items():
        cells = [_milliseconds(by_name[name]) for name in names]
        yield f"| {case} | {' | '.join(cells)} |"


def skew_table(report: dict[str, Any]) -> Iterator[str]:
    """The skewed stream, replayed and live, in Markdown."""
    found = report["skew"]
    yield (
        f"A tuple takes {found['tuple_us']:.1f} microseconds. Replayed, a window has "
        f"{report['window_rows']:,}; live, {found['rate']:,} come in a second, and folding them "
        f"takes {found['load']:.0%} of a core."
    )
    yield ""
    yield "| partitioner | replayed | as fast as `hash` | live | as fast as `hash` |"
    yield "|---|---|---|---|---|"
    for name, ms in found["latency_ms"].items():
        yield (
            f"| `{name}` | {_milliseconds(found['replayed_ms'][name])} "
            f"| {_times(found['hash_takes_longer'][name])} | {_milliseconds(ms)} "
            f"| {_times(found['hash_is_slower'][name])} |"
        )


def _times(ratio: dict[str, float]) -> str:
    return f"{ratio['median']:.2f} times ({ratio['low']:.2f} to {ratio['high']:.2f})"


def _milliseconds(of: dict[str, float]) -> str:
    return f"{of['median']:,.0f} ms ({of['low']:,.0f} to {of['high']:,.0f})"
