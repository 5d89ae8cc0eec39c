"""The highest rate that a live join sustains, and the latency there, against instances and windows.

    python benchmarks/sustained.py --cores 16 --instances 1,2,4,8,16
    python benchmarks/sustained.py --minutes 5 --exchanges shared --method auto
    python benchmarks/sustained.py --short                      less than a minute in all

Figures 5 and 7 of ScaleJoin and figure 5 of STRETCH: a band join of two streams with windows of 5,
10 and 15 minutes. Each try first gives the query a whole window of tuples, as fast as it takes
them, and when all are taken goes on in real time at the rate that is tried (of both sides
together), for `--seconds` after a few to settle. A rate is sustained where 99 of 100 tuples of the
last third were answered within `--within` seconds; latency is from arrival to commit, by the
engine's own account. Rates are doubled until one is not sustained; later tries are between the
highest that was and the lowest that was not.

`shared` are instances of one host that read the same files (STRETCH's V_SN), `shuffle` exchanges
tuples as executors do (P_SN); handover.py has what STRETCH's model makes of them. With `--switch`
the query with the most instances and the shortest window is also switched, from half of them to
all, in the middle of a run at three quarters of that rate. All tries with one number of instances
are in one process. Results go to benchmarks/results/sustained.json and sustained-*.svg.
"""

from __future__ import annotations

import argparse
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from chart import Chart, Line
from data import START_US
from measure import (
    CORES,
    CORES_GIVEN,
    MASTER,
    RESULTS,
    Batch,
    batches_of,
    common_arguments,
    give,
    in_child,
    serial,
    speed,
    write_report,
)
from skew import BAND, DOMAIN, PASSING
from sweep import sweep_arguments

from tidegate.model.sizing.rate_search import CLOSE, highest_rate

__all__ = ["CLOSE", "highest", "latency"]

EXCHANGES = ("shared", "shuffle")
STEP_S, SETTLE_S, CHUNK = 0.01, 3.0, 100_000
PASSED_ON = ("method", "rate", "seconds", "within", "tries")
QUERY = """
SELECT r.x, s.a FROM r [RANGE {ms} MILLISECONDS] JOIN s [RANGE {ms} MILLISECONDS]
ON r.x BETWEEN s.a - {band} AND s.a + {band} AND r.y <= s.b
"""


@dataclass(frozen=True)
class Setup:
    """What is tried: tuples a second of both sides together, and all that stays the same."""

    rate: float
    window_s: float
    seconds: float
    within_s: float
    instances: int
    exchange: str
    method: str
    switch_to: int | None = None


class Feed(threading.Thread):
    """Fills the windows at once, waits until they are taken, and goes on in real time."""

    def __init__(self, setup: Setup) -> None:
        import tidegate as tg

        super().__init__(daemon=True)
        self.setup, self._draw = setup, np.random.default_rng(28)
        schemas = (self._rows(side, 0, 0).schema for side in "rs")
        self.sources = [tg.MemorySource(time="ts", schema=schema) for schema in schemas]
        self.query: Any = None
        """Given before it is started."""
        self.paced_us = 0
        """The event time from which on tuples come in real time."""

    def run(self) -> None:
        setup, rate = self.setup, self.setup.rate / 2
        filled = max(int(rate * setup.window_s), 1)
        for first in range(0, filled, CHUNK):
            self._append(first, min(first + CHUNK, filled))
        while self.query.status()["rows_in"] < 1.99 * filled:  # the newest wait for the frontier
            time.sleep(0.02)
        self.paced_us = START_US + int(filled / rate * 1e6)
        begun, done, switch_to = time.monotonic(), filled, setup.switch_to
        while (passed := time.monotonic() - begun) < SETTLE_S + setup.seconds:
            due = filled + int(passed * rate)
            self._append(done, due)
            done = due
            if switch_to is not None and passed > SETTLE_S + setup.seconds / 2:
                self.query.scale(switch_to)
                switch_to = None
            time.sleep(STEP_S)
        for source in self.sources:
            source.end()

    def _append(self, first: int, last: int) -> None:
        if last > first:
            for side, source in zip("rs", self.sources, strict=True):
                source.append(self._rows(side, first, last))

    def _rows(self, side: str, first: int, last: int) -> pa.Table:
        """Tuples of one side; about one candidate of a million passes y <= b."""
        ts = START_US + (np.arange(first, last) / (self.setup.rate / 2) * 1e6).astype(np.int64)
        value, bound, low = ("x", "y", 0.0) if side == "r" else ("a", "b", PASSING - 1)
        return pa.table(
            {
                "ts": pa.array(ts, pa.timestamp("us", "UTC")),
                value: self._draw.integers(0, DOMAIN, last - first),
                bound: self._draw.random(last - first) + low,
            }
        )


def tried(session: Any, setup: Setup, work: Path) -> dict[str, Any]:
    """One try: its latency at the rate."""
    import tidegate as tg

    feed = Feed(setup)
    streams = {n: session.stream(s, time="ts") for n, s in zip("rs", feed.sources, strict=True)}
    text = QUERY.format(ms=round(setup.window_s * 1e3), band=BAND)
    joined = session.sql(text, **streams)

    def run() -> None:
        feed.query = joined.start(
            sink=tg.sink.files(str(work / "out")),
            checkpoint=str(work / "checkpoint"),
            instances=setup.instances,
            exchange=setup.exchange,
            method=setup.method,
        )
        feed.start()
        feed.query.wait()

    batches = batches_of(run)
    return {**asdict(setup), **reduced(batches, feed.paced_us, setup)}


def reduced(batches: Sequence[Batch], paced_us: int, setup: Setup) -> dict[str, Any]:
    """What was measured in real time, after some seconds."""
    since_us = paced_us + int(SETTLE_S * 1e6)
    paced = [b for b in batches if b["frontier_us"] > since_us and b["latency_ms"]][:-1]
    late = [b for b in paced if b["frontier_us"] > since_us + setup.seconds * 2e6 / 3]
    found: dict[str, Any] = {
        "latency_ms": latency(paced),
        "sustained": bool(late) and latency(late)["p99"] <= setup.within_s * 1e3,
    }
    if paced:
        found |= {
            "rows_per_second": speed(paced)["rows_per_second"],
            "comparisons_per_second": sum(b["comparisons"] for b in paced) / setup.seconds,
            "batch_ms": speed(paced)["batch_ms_median"],
            "serial": serial(paced),
        }
    if setup.switch_to is not None and paced:
        switched = [b for b in paced if b["task_time"][3] != setup.instances]
        first = switched[0] if switched else paced[-1]
        before = paced[: paced.index(first)]
        found["switch"] = {
            "before": latency(before),
            "batch_ms": first["seconds"] * 1e3,
            "after": latency(switched),
        }
    return found


def latency(batches: Sequence[Batch]) -> dict[str, float]:
    """Of all tuples of these batches, as batches tell it: p50 is that of the tuples' middle one.

    A percentile is that of the batches' own, each counted with its tuples.
    """
    if not batches:
        return {"p50": math.inf, "p99": math.inf, "max": math.inf}
    tuples = np.array([b["latency_ms"]["tuples"] for b in batches], float)
    found = {}
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        values = np.array([b["latency_ms"][name] for b in batches])
        order = np.argsort(values)
        place = np.searchsorted(np.cumsum(tuples[order]), share * tuples.sum())
        found[name] = float(values[order][min(place, len(values) - 1)])
    return {**found, "max": float(max(b["latency_ms"]["max"] for b in batches))}


def highest(attempt: Callable[[float], dict[str, Any]], rate: float, tries: int) -> dict[str, Any]:
    """The try with the highest rate that is sustained, from a first rate on, and all tries."""
    found = highest_rate(attempt, lambda one: one["sustained"], rate, tries)
    return {"best": found.best, "tries": list(found.tries)}


def child(arguments: argparse.Namespace) -> None:
    """All windows of one exchange and number of instances, in the process made for them."""
    import tidegate as tg

    session, work = tg.Session(master=MASTER), Path(arguments.work)
    found: dict[str, Any] = {}
    setup = setup_of(arguments)
    for minutes in arguments.minutes:
        now = replace(setup, window_s=60 * minutes)
        attempt = partial(attempted, session, now, work / f"{minutes:g}")
        found[f"{minutes:g}"] = done = highest(attempt, now.rate, arguments.tries)
        best = done["best"]
        if arguments.switch and best is not None and minutes == min(arguments.minutes):
            half = replace(now, instances=now.instances // 2, switch_to=now.instances)
            half = replace(half, rate=0.75 * best["rate"])
            found["switch"] = tried(session, half, work / "switch")
        if best is not None:  # a longer window holds more, and is tried from there
            setup = replace(setup, rate=best["rate"])
    give(found)


def attempted(session: Any, setup: Setup, work: Path, rate: float) -> dict[str, Any]:
    """The same setup at another rate."""
    return tried(session, replace(setup, rate=rate), work / f"{rate:.0f}")


def setup_of(arguments: argparse.Namespace) -> Setup:
    return Setup(
        rate=arguments.rate,
        window_s=0.0,
        seconds=arguments.seconds,
        within_s=arguments.within,
        instances=arguments.instances[0],
        exchange=arguments.child,
        method=arguments.method,
    )


def table(runs: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> Iterator[str]:
    """In Markdown."""
    yield "| exchange | minutes | instances | tuples/s | p50 | p99 | comparisons/s | serial |"
    yield "|---|---|---|---|---|---|---|---|"
    for exchange, by in runs.items():
        for minutes in (name for name in next(iter(by.values())) if name != "switch"):
            found = {n: of[minutes]["best"] for n, of in by.items() if of[minutes]["best"]}
            for n, best in found.items():
                times = best["latency_ms"]
                yield (
                    f"| {exchange} | {minutes} | {n} | {best['rate']:,.0f} | {times['p50']:.0f} ms "
                    f"| {times['p99']:.0f} ms | {best['comparisons_per_second']:.1e} "
                    f"| {best['serial']['serial_time']:.0%} |"
                )


def draw(runs: Mapping[str, Mapping[int, Mapping[str, Any]]], result: str) -> None:
    """Throughput and latency against instances, a picture of each window."""
    for minutes in (
        name for name in next(iter(next(iter(runs.values())).values())) if name != "switch"
    ):
        rates, times = [], []
        for exchange, by in runs.items():
            found = {n: of[minutes]["best"] for n, of in by.items() if of[minutes]["best"]}
            if found:
                counts = list(found)
                rates.append(Line(exchange, [b["rate"] / 1e3 for b in found.values()], counts))
                times += [
                    Line(f"{exchange} {p}", [b["latency_ms"][p] for b in found.values()], counts)
                    for p in ("p50", "p99")
                ]
        for what, unit, lines in (("rate", "thousand tuples/s", rates), ("latency", "ms", times)):
            if lines:
                title = f"highest rate that is sustained, {minutes} minutes: {what}"
                file = RESULTS / f"{result}-{what}-{minutes}.svg"
                Chart(title, unit, lines, time="instances").write(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, nargs="+", default=[5.0, 10.0, 15.0])
    parser.add_argument("--exchanges", nargs="+", choices=EXCHANGES, default=list(EXCHANGES))
    parser.add_argument("--method", default="scan", help="scan, as the papers have it, or auto")
    parser.add_argument("--rate", type=float, default=2_000.0, help="of the first try, both sides")
    parser.add_argument("--seconds", type=float, default=20.0, help="measured of each try")
    parser.add_argument("--within", type=float, default=1.0, help="seconds, of 99 in 100 tuples")
    parser.add_argument("--tries", type=int, default=6)
    parser.add_argument("--result", default="sustained", metavar="NAME", help="of the files")
    parser.add_argument("--short", action="store_true", help="tiny windows, two tries of 3 s")
    parser.add_argument(
        "--switch", action="store_true", help="also from half of the most instances to all"
    )
    common_arguments(parser, rounds=1)
    sweep_arguments(parser, [1, CORES])
    arguments = parser.parse_args()
    if arguments.short:
        arguments.minutes, arguments.exchanges, arguments.tries = [0.05], ["shared"], 2
        arguments.seconds = 3.0
    if arguments.child:
        child(arguments)
        return
    runs: dict[str, dict[int, Any]] = {}
    for exchange in arguments.exchanges:
        for n in arguments.instances:
            words = [f"--{name}={getattr(arguments, name)}" for name in PASSED_ON]
            words += ["--minutes", *map(str, arguments.minutes)]
            if arguments.switch and n == max(arguments.instances) > 1:
                words += ["--switch"]
            done = in_child(
                __file__, "--child", exchange, *words, instances=n, cores=CORES_GIVEN or n
            )
            runs.setdefault(exchange, {})[n] = done
            print(f"{exchange}, {n}: {summed(done)}", flush=True)
    print("\n".join(table(runs)))
    given = {name: getattr(arguments, name) for name in (*PASSED_ON, "minutes")}
    write_report(arguments.result, {**given, "query": QUERY.strip(), "runs": runs})
    draw(runs, arguments.result)


def summed(done: Mapping[str, Any]) -> str:
    """One line of a process."""
    parts = []
    for name, of in done.items():
        if name == "switch":
            told = of.get("switch")
            parts.append(f"switch {told and round(told['batch_ms'])} ms")
            continue
        best = of["best"]
        rate = "none sustained" if best is None else f"{best['rate']:,.0f}/s"
        parts.append(f"{name} minutes {rate}")
    return ", ".join(parts)


if __name__ == "__main__":
    main()
