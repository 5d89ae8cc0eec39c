"""How even a scan join divides its comparisons with several uneven physical streams a side.

    python benchmarks/physical_streams.py                  figure 8 of ScaleJoin
    python benchmarks/physical_streams.py --seconds 2 --window 2     a quick look

The three cases of ScaleJoin's section VI-D, with its streams, rates and numbers of instances:

constant      one R stream of 1,200 tuples a second and four S streams with 900 in all, 10 instances
fluctuating   three R and two S streams along sines of other heights and periods, 12 instances
peaks         four R and two S streams, constant but for sudden peaks, 14 instances

Windows are 20 seconds and not five minutes, so that a case compares a fifteenth as much. A batch is
about a second of tuples. Of each batch after the windows filled there are the comparisons that the
instances made: their mean, and their deviation as a share of it. There are two buckets each;
`with 64 buckets` is the same with the default. Instances take turns in this process, so this says
how work is divided, and nothing of speed. Results go to benchmarks/results/physical_streams.json.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from data import START_US
from measure import batches_of, write_report

import tidegate as tg

WINDOW_S, SECONDS, STEPS, SEED = 20, 20.0, 100, 3
Rate = Callable[[Any], Any]
SELECT = (
    "SELECT r.x, r.y, s.a, s.b FROM r [RANGE {w} SECONDS] JOIN s [RANGE {w} SECONDS] "
    "ON r.x BETWEEN s.a - 10 AND s.a + 10 AND r.y BETWEEN s.b - 10 AND s.b + 10;"
)


def constant(rate: float) -> Rate:
    return lambda t: np.full(np.shape(t), rate)


def sine(middle: float, height: float, period_s: float) -> Rate:
    return lambda t: middle + height * np.sin(2 * np.pi * t / period_s)


def peaks(rate: float, height: float, every_s: float, lasts_s: float) -> Rate:
    return lambda t: rate + height * (np.mod(t, every_s) < lasts_s)


@dataclass(frozen=True)
class Case:
    """The rates of the physical streams of both sides, in tuples a second, and the instances."""

    r: Sequence[Rate]
    s: Sequence[Rate]
    instances: int

    @property
    def buckets(self) -> int:
        return self.instances * 2


CASES = {
    "constant": Case([constant(1200)], [constant(x) for x in (350, 250, 200, 100)], 10),
    "fluctuating": Case(
        [sine(350, 150, 40), sine(300, 100, 70), sine(250, 120, 25)],
        [sine(450, 200, 50), sine(350, 150, 90)],
        12,
    ),
    "peaks": Case(
        [peaks(250, 400, 45, 5), constant(300), peaks(200, 300, 30, 3), constant(250)],
        [peaks(450, 500, 60, 6), constant(450)],
        14,
    ),
}


def times_us(rate: Rate, seconds: float) -> Any:
    """Event times that follow a rate, by the integral of it."""
    at = np.linspace(0, seconds, int(seconds * STEPS) + 1)
    came = np.concatenate(([0.0], np.cumsum(rate(at[:-1]) / STEPS)))
    exact = np.interp(np.arange(1, int(came[-1]) + 1), came, at)
    return START_US + np.round(exact * 1e6).astype(np.int64)


def write_side(folder: Path, side: str, columns: str, rates: Sequence[Rate], seconds: float) -> str:
    """A file for each physical stream; the statement that reads them."""
    chance, paths = np.random.default_rng([SEED, ord(side)]), []
    for number, rate in enumerate(rates):
        moments = pa.array(times_us(rate, seconds), pa.timestamp("us", tz="UTC"))
        made = {"ts": moments}
        for name in columns:
            made[name] = pa.array(chance.integers(1, 10_001, len(moments)).astype(np.float32))
        paths.append(folder / f"{side}{number}.parquet")
        pq.write_table(pa.table(made), paths[-1])
    return f"CREATE STREAM {side} FROM {', '.join(map(repr, map(str, paths)))} TIME ts;\n"


def run(case: Case, buckets: int, *, window_s: int, seconds: float) -> list[list[int]]:
    """The comparisons of each instance, batch by batch, with full windows."""
    total = window_s + seconds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sql = write_side(folder, "r", "xy", case.r, total)
        sql += write_side(folder, "s", "ab", case.s, total) + SELECT.format(w=window_s)
        rate = sum(len(times_us(one, total)) for one in (*case.r, *case.s)) / total
        stream = tg.Session(master="none").sql(sql)

        def whole() -> None:
            stream.start(
                sink=tg.sink.files(str(folder / "out")),
                checkpoint=str(folder / "checkpoint"),
                instances=case.instances,
                buckets=buckets,
                method="scan",
                batch_rows=round(rate),
            ).wait()

        batches = batches_of(whole)[:-1]
    full = START_US + window_s * 1_000_000
    return [b["per_instance"]["compared"] for b in batches if b["frontier_us"] > full]


def summed_up(batches: Sequence[Sequence[int]]) -> dict[str, Any]:
    """The mean of the instances of each batch, and how far they lie apart."""
    means = [statistics.fmean(of) for of in batches]
    apart = [statistics.pstdev(of) / mean for of, mean in zip(batches, means, strict=True)]
    return {
        "batches": len(batches),
        "instances": len(batches[0]),
        "comparisons": sum(map(sum, batches)),
        "deviation_mean": statistics.fmean(apart),
        "deviation_most": max(apart),
        "mean_least": min(means),
        "mean_most": max(means),
        "means": [round(mean) for mean in means],
        "deviations": [round(one, 6) for one in apart],
        "at": list(range(len(batches))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=SECONDS, help="with full windows")
    parser.add_argument("--window", type=int, default=WINDOW_S, help="of both sides, in seconds")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    asked = parser.parse_args()
    found = {}
    for name in asked.cases:
        case = CASES[name]
        of = partial(run, case, window_s=asked.window)
        found[name] = summed_up(of(case.buckets, seconds=asked.seconds))
        of_64 = summed_up(of(64, seconds=min(asked.seconds, 5)))
        found[name]["with 64 buckets"] = of_64["deviation_mean"]
        print(name, *(f"{k} {v:.4g}" for k, v in found[name].items() if "_" in k), flush=True)
    write_report("physical_streams", {"window_s": asked.window, "cases": found})


if __name__ == "__main__":
    main()
