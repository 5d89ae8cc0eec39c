"""Tidegate beside other engines over the same files, in one run.

    python benchmarks/peers.py --setup                        environments of the others, once
    python benchmarks/peers.py                                two cores, all that are there
    python benchmarks/peers.py --beside 8                     on 16 cores, eight runs at once
    python benchmarks/peers.py --cores 16 --cases sliding band
    python benchmarks/peers.py --rows 40000 --rounds 1        whether all give the same rows

    tumbling, sliding   mean and count of each key over 60 s, each minute or every 10 s
    median              the same windows of 10 s, exact
    equality, band      joins within 60 and 20 s
    asof                the last row of the key before
    tiny                the sliding one in batches of 1,000 rows: milliseconds for a batch
    latency             a window of 10 s, each second, of files that come in, see `peer_live.py`

Engines: `tidegate`; `spark`, `flink`, `bytewax` and `pathway` each as its own documentation advises
(`peer_engines/` has the programs, and each says its settings); `duckdb` takes all input at once, so
it is a limit and no stream engine. Quix Streams reads from Kafka alone and is left out. An engine
is run by the Python of an environment of its own in the user's cache, from PyPI, or of `--peers`;
one that is not there is left out, and so is what an engine cannot do, with its reason.

The seconds are from submitting a query to its end, without starting Python, the JVM or a cluster.
Rows are compared with DuckDB's, as sets: floats to nine digits, windows that have ended when the
input does. Each run is a process of its own, on as many processors as it is told to use; engines
take turns in each round. Results go to benchmarks/results/peers.json, of other than two cores to
peers-N.json; those of some `--cases` or `--engines` are put into the result that is there.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import peer_live
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
from data import write_band, write_events, write_keyed
from measure import (
    CORES,
    MARK,
    RESULTS,
    beside,
    beside_argument,
    common_arguments,
    middle,
    origin,
    write_report,
)
from peer_engine import CACHE, CANNOT, ENGINES, Engine, set_up

ROWS, FILE_ROWS, KEYS, RATE = 2_000_000, 100_000, 20_000, 10_000
TINY_ROWS, TINY_FILE = 60_000, 1_000
_BATCH_ROWS, _SPAN_S = 500_000, 200
CASES = ("tumbling", "sliding", "median", "equality", "band", "asof", "tiny", "latency")
COLUMNS = {
    **dict.fromkeys(("tumbling", "sliding", "tiny"), ("end_us", "key", "mean", "n")),
    "median": ("end_us", "key", "m"),
    "band": ("x", "y", "a", "b"),
    **dict.fromkeys(("equality", "asof"), ("key", "a", "b")),
}
_WITHOUT_ANSWER = ("tiny", "latency")
"""Cases that DuckDB cannot do: of latency the windows are counted, tiny is another's query."""

Run = dict[str, Any]


def write_input(folder: Path, rows: int) -> None:
    """The streams, as Parquet for who can read it and as CSV for who cannot.

    Fewer rows than by default are less dense, so that as many windows end.
    """
    rate = min(RATE, rows // _SPAN_S)
    write_events(folder / "events", rows, min(FILE_ROWS, rows), KEYS, rate)
    write_events(folder / "tiny", min(TINY_ROWS, rows), TINY_FILE, KEYS, 100)
    write_keyed(folder / "keyed", rows // 4, min(FILE_ROWS // 2, rows // 4), KEYS)
    # A tuple has about ten partners within 20 seconds on the other side.
    write_band(folder / "band", rows // 10, RATE, 2_000)
    for name, source in _streams(folder):
        files = sorted(source.glob("*.parquet"))
        target = folder / "numbers" / name
        if not target.exists():
            target.mkdir(parents=True)
            for file in files:
                peer_live.write_csv(pq.read_table(file), pa.int64(), target / f"{file.stem}.csv")
        target = folder / f"csv-{CORES}" / name
        if not target.exists():
            target.mkdir(parents=True)
            write_parts(pa.concat_tables(pq.read_table(file) for file in files), target, CORES)


def write_parts(rows: pa.Table, folder: Path, many: int) -> None:
    """For Flink a file for each core, all in the order of time: row by row they take turns."""
    for part in range(many):
        mine = rows.take(np.arange(part, len(rows), many))
        peer_live.write_csv(mine, pa.string(), folder / f"{part}.csv")


def _streams(folder: Path) -> Iterator[tuple[str, Path]]:
    yield "events", folder / "events"
    for side in ("left", "right"):
        yield side, folder / "keyed" / side


def run(engine: Engine, case: str, data: Path, work: Path, limit_s: float) -> Run:
    """One run in a process of its own; what it told, or why there is nothing."""
    work.mkdir()
    batch_rows = TINY_FILE if case == "tiny" else _BATCH_ROWS
    job = {"case": case, "data": str(data), "work": str(work), "cores": CORES}
    job["batch_rows"] = batch_rows
    if case == "latency":
        return peer_live.run(engine, job, work)
    try:
        done = subprocess.run(
            engine.command(json.dumps(job)),
            env=engine.environment(CORES),
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"it took more than {limit_s:.0f} seconds"}
    told = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not told:
        errors = [
            line for line in done.stderr.splitlines() if "Error" in line or "Exception" in line
        ]
        failed = (errors or [f"it ended with {done.returncode}"])[-1][:200]
        return {"failed": failed, "errors": done.stderr[-3000:]}
    found: Run = json.loads(told[-1].removeprefix(MARK))
    return found


def answer(work: Path, case: str, until_us: int) -> Any:
    """The rows of a run, sorted: of windows those that have ended by `until_us`."""
    kept, columns = work / "rows.parquet", COLUMNS[case]
    if kept.exists():
        table = pq.read_table(kept)
    else:
        options = pcsv.ReadOptions(column_names=list(columns))
        table = pcsv.read_csv(work / "rows.csv", options)
    rows = np.column_stack([table.column(i).to_numpy().astype(float) for i in range(len(columns))])
    if columns[0] == "end_us":
        rows = rows[rows[:, 0] <= until_us]
    return rows[np.lexsort(rows.T[::-1])]


def same(one: Any, other: Any) -> bool:
    """Whether two answers have the same rows, floats to nine digits."""
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-9, atol=1e-9))


class Comparison:
    """Runs over the same input; each engine's first answer of a case is compared with DuckDB's."""

    def __init__(self, data: Path, folder: Path, limit_s: float) -> None:
        self._data, self._folder, self._limit_s = data, folder, limit_s
        last = sorted((data / "events").glob("*.parquet"))[-1]
        self._until_us = int(pq.read_table(last)["ts"].cast(pa.int64())[-1].as_py())
        self._wanted: dict[str, Any] = {}

    def ask_duckdb(self, place: Path, case: str, cpus: Sequence[int] | None) -> None:
        """Take the rows that all others are compared with."""
        _stay_on(cpus)
        work = self._folder / f"{case}-wanted"
        told = run(Engine("duckdb", place), case, self._data, work, self._limit_s)
        if "failed" in told:
            raise SystemExit(f"{case}: DuckDB must give the rows to compare with; {told['failed']}")
        rows = answer(work, case, self._until_us)
        if not len(rows):
            raise SystemExit(f"{case}: there must be rows to compare; got none. Take more --rows.")
        self._wanted[case] = rows

    def measure(self, place: Path, name: str, cpus: Sequence[int] | None) -> Run:
        """One run of `ROUND CASE ENGINE`."""
        _stay_on(cpus)
        number, case, engine = name.split()
        work = self._folder / name.replace(" ", "-")
        told = run(Engine(engine, place), case, self._data, work, self._limit_s)
        if "failed" not in told and number == "0" and case in self._wanted:
            rows = answer(work, case, self._until_us)
            told |= {"rows": len(rows), "same_rows": same(rows, self._wanted[case])}
        print(f"{name}: {_said(told)}", flush=True)
        return told


def _stay_on(cpus: Sequence[int] | None) -> None:
    """This thread, and what it starts, on as many processors as an engine is told to use."""
    os.sched_setaffinity(0, cpus or sorted(os.sched_getaffinity(0))[:CORES])


def _said(told: Run) -> str:
    if "failed" in told:
        return f"{told['failed']}\n{told.pop('errors', '')}".rstrip()
    if "latency_ms" in told:
        lacking = f", {told['lacking']} windows lack rows" if told["lacking"] else ""
        return f"{told['latency_ms']['p50']:.0f} ms in the median{lacking}"
    rows = {True: "the same rows", False: "OTHER ROWS"}.get(told.get("same_rows", ""), "")
    return f"{told['seconds']:.2f} s {rows}".rstrip()


def in_turns(engines: Sequence[str], cases: Sequence[str], rounds: int) -> list[str]:
    """The runs as `ROUND CASE ENGINE`, without what an engine cannot do."""
    return [
        f"{number} {case} {engine}"
        for number in range(rounds)
        for case in cases
        for engine in engines
        if case not in CANNOT.get(engine, {})
    ]


def summed_up(case: str, runs: Sequence[Run], rows_in: int) -> Run:
    """An engine's runs of a case: medians and spread, or the first failure."""
    failures = [told["failed"] for told in runs if "failed" in told]
    if failures:
        return {"failed": failures[0]}
    about = {name: runs[0][name] for name in ("version", "settings")}
    if case == "latency":
        times = {p: middle([told["latency_ms"][p] for told in runs]) for p in ("p50", "p99")}
        lacking = sum(told["lacking"] for told in runs)
        return {**about, "latency_ms": times, "rate": runs[0]["rate"], "lacking": lacking}
    seconds = [told["seconds"] for told in runs]
    found: Run = {**about, "seconds": middle(seconds), "runs_s": seconds, "rows_in": rows_in}
    found["rows_per_second"] = middle([rows_in / s for s in seconds])
    found |= {name: runs[0][name] for name in ("rows", "same_rows") if name in runs[0]}
    if case == "tiny":
        found["batch_ms"] = middle([1e3 * t["seconds"] / max(t["batches"], 1) for t in runs])
    return found


def rows_of(case: str, data: Path) -> int:
    folders = {"equality": "keyed/*", "asof": "keyed/*", "band": "band", "tiny": "tiny"}
    files = data.glob(f"{folders.get(case, 'events')}/*.parquet")
    return sum(pq.read_metadata(file).num_rows for file in files)


def section(report: Run) -> Iterator[str]:
    """How often and where it ran, and the table of its cases."""
    cores, rounds = report["used_cores"], report["rounds"]
    runs = f"The median of {rounds} runs" if rounds > 1 else "One run"
    spread = ", with the least and the most" if rounds > 1 else ""
    option = "" if cores == 2 else f" (`--cores {cores}`)"
    yield f"{runs} on {cores} cores{option}{spread}; {report['cpu']}, {_made(report['cases'])}:"
    yield ""
    yield from table(report["cases"])


def _made(cases: dict[str, Any]) -> str:
    """When cases ran, and of which commit; by names where a run did not have all of them."""
    runs: dict[str, list[str]] = {}
    for case, of in cases.items():
        did = [one for one in of.values() if "date" in one]
        for made in dict.fromkeys(f"{one['date']}, commit {one['commit']}" for one in did):
            runs.setdefault(made, []).append(case)
    if len(runs) == 1:
        return next(iter(runs))
    return "; ".join(f"{', '.join(of)}: {made}" for made, of in runs.items())


def table(cases: dict[str, Any]) -> Iterator[str]:
    """Rows a second of each engine, in Markdown: the median, and the least and the most."""
    engines = list(dict.fromkeys(engine for of in cases.values() for engine in of))
    yield "| thousand rows/s | " + " | ".join(engines) + " |"
    yield "|---|" + "---|" * len(engines)
    for case, of in cases.items():
        cells = [_cell(case, of.get(engine, {})) for engine in engines]
        yield f"| {_TITLES.get(case, case)} | {' | '.join(cells)} |"


_TITLES = {"tiny": "tiny, ms a batch", "latency": "latency, ms: median, 99 of 100"}


def _cell(case: str, of: Run) -> str:
    if "version" not in of:
        return str(of.get("failed", "-"))
    if case == "latency":
        times = ", ".join(f"{of['latency_ms'][p]['median']:,.0f}" for p in ("p50", "p99"))
        return times + (f" ({of['lacking']} windows lack rows)" if of["lacking"] else "")
    found = of["batch_ms"] if case == "tiny" else of["rows_per_second"]
    middle_, low, high = (found[k] / (1 if case == "tiny" else 1e3) for k in _SPREAD)
    other = "" if of.get("same_rows", True) else " (other rows)"
    return f"{_short(middle_)} ({_short(low)} to {_short(high)}){other}"


_SPREAD = ("median", "low", "high")


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


def settings_table(cases: dict[str, Any]) -> Iterator[str]:
    """The version and the settings of each engine, and what it cannot do."""
    yield "| engine | version | settings | not done, because |"
    yield "|---|---|---|---|"
    for engine in dict.fromkeys(engine for of in cases.values() for engine in of):
        did = {c: of[engine] for c, of in cases.items() if "version" in of.get(engine, {})}
        version = next((of["version"] for of in did.values()), "-")
        known = {c: of.get(engine, {}) for c, of in cases.items()}
        reasons = {c: of["cannot"] for c, of in known.items() if "cannot" in of}
        cannot = "; ".join(f"{case}: {why}" for case, why in reasons.items()) or "-"
        yield f"| {engine} | {version} | {_settings(did)} | {cannot} |"


def _settings(did: dict[str, Run]) -> str:
    """Those of most cases, and those of others behind their names."""
    each = [of["settings"] for of in did.values()]
    most = statistics.mode(each) if each else "-"
    others = [f"{case}: {of['settings']}" for case, of in did.items() if of["settings"] != most]
    return "; ".join([most, *others])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    common_arguments(parser, rounds=3)
    beside_argument(parser)
    parser.add_argument("--setup", action="store_true", help="install the other engines")
    parser.add_argument("--peers", type=Path, default=CACHE, help="where the others are installed")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--rows", type=int, default=ROWS, help="of the events")
    parser.add_argument("--limit", type=float, default=600, help="seconds of a run at most")
    asked = parser.parse_args()
    if asked.setup:
        if failed := set_up(asked.peers):
            sys.exit(f"could not be installed: {', '.join(failed)}")
        return
    engines = [name for name in asked.engines if Engine(name, asked.peers).is_there()]
    for name in sorted(set(asked.engines) - set(engines)):
        print(f"{name}: left out; `python benchmarks/peers.py --setup` installs it")
    data = Path(asked.data) / f"peers-{asked.rows}"
    write_input(data, asked.rows)
    with tempfile.TemporaryDirectory(prefix="tidegate-peers-") as folder:
        comparison = Comparison(data, Path(folder), asked.limit)
        compared = [case for case in asked.cases if case not in _WITHOUT_ANSWER]
        beside(asked.beside, partial(comparison.ask_duckdb, asked.peers), compared)
        names = in_turns(engines, asked.cases, asked.rounds)
        told = beside(asked.beside, partial(comparison.measure, asked.peers), names)
    runs: dict[tuple[str, str], list[Run]] = {}
    for name, one in zip(names, told, strict=True):
        runs.setdefault((name.split()[1], name.split()[2]), []).append(one)
    cases = {
        case: {
            engine: {"cannot": CANNOT[engine][case]}
            if case in CANNOT.get(engine, {})
            else {**summed_up(case, runs[case, engine], rows_of(case, data)), **origin()}
            for engine in engines
        }
        for case in asked.cases
    }
    print("\n".join([*table(cases), "", *settings_table(cases)]))
    name = "peers" if CORES == 2 else f"peers-{CORES}"
    of = {"used_cores": CORES, "rows": asked.rows, "rounds": asked.rounds}
    if asked.rows == ROWS:
        keep(name, {**of, "cases": cases})
    else:
        print(f"a look: results are kept of {ROWS:,} rows")
    if wrong := [f"{c}, {e}" for c, of in cases.items() for e, o in of.items() if not _is_right(o)]:
        sys.exit(f"failed, or gave other rows: {'; '.join(wrong)}")


def keep(name: str, found: Run) -> None:
    """Write a result; of some cases or engines alone into the one that is there.

    Nothing is written where that one is of other rows or rounds.
    """
    file = RESULTS / f"{name}.json"
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    cases = found["cases"]
    if before is None or _covers(cases, before["cases"]):
        write_report(name, found)
    elif any(before[what] != found[what] for what in ("rows", "rounds")):
        print(f"{file.name} is of other rows or rounds and has more cases: it stays as it is")
    else:
        both = {case: {**of, **cases.get(case, {})} for case, of in before["cases"].items()}
        both |= {case: of for case, of in cases.items() if case not in both}
        write_report(name, {**found, "cases": both})


def _covers(cases: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether all that a result has was measured anew."""
    return all(of.keys() <= cases.get(case, {}).keys() for case, of in before.items())


def _is_right(of: Run) -> bool:
    return "failed" not in of and bool(of.get("same_rows", True))


if __name__ == "__main__":
    main()
