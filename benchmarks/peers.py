"""Tidegate beside other engines over the same files, in one run.

    python benchmarks/peers.py --setup                        environments of the others, once
    python benchmarks/peers.py                                two cores, all that are there
    python benchmarks/peers.py --cores 16
    python benchmarks/peers.py --rows 700000 --rounds 1 --engines tidegate duckdb

    tumbling, sliding   mean and count of each key over 60 s, each minute or every 10 s
    median              the same windows of 10 s, exact
    equality, band      joins within 60 and 20 s
    asof                the last row of the key before
    tiny                the sliding one in batches of 1,000 rows: milliseconds for a batch

Engines: `tidegate`; `spark`, `flink`, `bytewax` and `pathway` each as its own documentation advises
(`peer_engines/` has the programs, and each says its settings); `duckdb` takes all input at once, so
it is a limit and no stream engine. Quix Streams reads from Kafka alone and is left out. An engine
is run by the Python of an environment of its own in the user's cache, from PyPI; one that is not
there is left out, and so is what an engine cannot do, with its reason.

The seconds are from submitting a query to its end, without starting Python and the JVM. Rows are
compared with DuckDB's, as sets: floats to nine digits, windows that have ended when the input does.
Each run is a process of its own; engines take turns. Latency at a fixed rate is `latency.py`'s.
Results go to benchmarks/results/peers.json, of other than two cores to peers-N.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
from data import write_band, write_events, write_keyed
from measure import CORES, HERE, common_arguments, middle, write_report

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tidegate" / "peers"
PACKAGES = {"flink": "apache-flink", "bytewax": "bytewax", "pathway": "pathway"}
HERE_TOO = ("tidegate", "spark", "duckdb")
ROWS, FILE_ROWS, KEYS, RATE, LIMIT_S = 2_000_000, 100_000, 20_000, 10_000, 600
TINY_ROWS, TINY_FILE = 60_000, 1_000
_BATCH_ROWS = 500_000

NO_EQUALITY = "it has no join on streams without an equality"
CANNOT: dict[str, dict[str, str]] = {
    "duckdb": {"tiny": "it has no batches"},
    "spark": {"band": NO_EQUALITY, "asof": "it has no as-of join on streams"},
    "flink": {
        "median": "its SQL has no exact median of windows",
        "band": NO_EQUALITY + " that forgets old rows",
        "tiny": "it has no batches",
    },
    "bytewax": {
        "median": "windows are folded row by row; a median would be a list of a user's own",
        "equality": "its join keeps one row of a side, or is of windows that tumble",
        "band": NO_EQUALITY,
        "asof": "it has none",
        "tiny": "it has no batches",
    },
    "pathway": {
        "median": "it has no reducer for it",
        "band": NO_EQUALITY,
        "tiny": "it has no batches",
    },
}
CASES = ("tumbling", "sliding", "median", "equality", "band", "asof", "tiny")
COLUMNS = {
    **dict.fromkeys(("tumbling", "sliding", "tiny"), ("end_us", "key", "mean", "n")),
    "median": ("end_us", "key", "m"),
    "band": ("x", "y", "a", "b"),
    **dict.fromkeys(("equality", "asof"), ("key", "a", "b")),
}


def python_of(engine: str) -> Path:
    return Path(sys.executable) if engine in HERE_TOO else CACHE / engine / "bin" / "python"


def set_up() -> None:
    """An environment for each engine that PyPI has; those that fail are named."""
    for engine, package in PACKAGES.items():
        place = CACHE / engine
        if not (place / "bin" / "python").exists():
            subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", package, "pyarrow"]
        done = subprocess.run(pip, check=False)
        print(f"{engine}: {'there' if done.returncode == 0 else 'could not be installed'}")


def write_input(folder: Path, rows: int) -> None:
    """The streams, as Parquet for who can read it and as CSV for who cannot."""
    write_events(folder / "events", rows, min(FILE_ROWS, rows), KEYS, RATE)
    write_events(folder / "tiny", min(TINY_ROWS, rows), TINY_FILE, KEYS, 100)
    write_keyed(folder / "keyed", rows // 4, min(FILE_ROWS // 2, rows // 4), KEYS)
    # A tuple has about ten partners within 20 seconds on the other side.
    write_band(folder / "band", rows // 10, RATE, 2_000)
    for name, source in _streams(folder):
        for kind, times in (("csv", pa.string()), ("numbers", pa.int64())):
            target = folder / kind / name
            if target.exists():
                continue
            target.mkdir(parents=True)
            for file in sorted(source.glob("*.parquet")):
                _write_csv(pq.read_table(file), times, target / f"{file.stem}.csv")


def _streams(folder: Path) -> Iterator[tuple[str, Path]]:
    yield "events", folder / "events"
    for side in ("left", "right"):
        yield side, folder / "keyed" / side


def _write_csv(rows: pa.Table, times: pa.DataType, target: Path) -> None:
    """Times as Flink reads them, or as numbers, of which the names of columns come first."""
    if times == pa.int64():
        moments = rows["ts"].cast(times)
    else:
        millis = rows["ts"].cast(pa.timestamp("ms"), safe=False)
        moments = pc.strftime(millis, "%Y-%m-%d %H:%M:%S")
    options = pcsv.WriteOptions(include_header=times == pa.int64(), quoting_style="none")
    pcsv.write_csv(rows.set_column(0, "ts", moments), target, options)


def run(engine: str, case: str, data: Path, work: Path) -> dict[str, Any]:
    """One run in a process of its own; what it told, or why there is nothing."""
    tiny = case == "tiny"
    batch_rows = TINY_FILE if tiny else _BATCH_ROWS
    job = {"case": case, "data": str(data), "work": str(work), "cores": CORES}
    program = HERE / "peer_engines" / f"{engine}_peer.py"
    environment = {**os.environ, "PATHWAY_THREADS": str(CORES), "PYTHONPATH": str(HERE)}
    try:
        done = subprocess.run(
            [str(python_of(engine)), str(program), json.dumps({**job, "batch_rows": batch_rows})],
            env=environment,
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"it took more than {LIMIT_S} seconds"}
    told = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if done.returncode or not told:
        print(done.stdout[-2000:], done.stderr[-3000:], file=sys.stderr)
        errors = [
            line for line in done.stderr.splitlines() if "Error" in line or "Exception" in line
        ]
        return {"failed": (errors or ["it ended with " + str(done.returncode)])[-1][:200]}
    found: dict[str, Any] = json.loads(told[-1].removeprefix("RESULT "))
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


def measure(case: str, engines: list[str], rounds: int, data: Path) -> dict[str, Any]:
    """A case on all engines, which take turns; the first answer of each is compared."""
    last = sorted((data / ("tiny" if case == "tiny" else "events")).glob("*.parquet"))[-1]
    until_us = int(pq.read_table(last, columns=["ts"])["ts"].cast(pa.int64())[-1].as_py())
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="tidegate-peers-") as folder:
        wanted = None if case == "tiny" else _answer_of_duckdb(case, data, Path(folder), until_us)
        for number in range(rounds):
            for engine in engines:
                if reason := CANNOT.get(engine, {}).get(case):
                    found[engine] = {"cannot": reason}
                    continue
                work = Path(folder, f"{engine}-{number}")
                work.mkdir()
                told = run(engine, case, data, work)
                one = found.setdefault(engine, {"runs_s": []})
                if "failed" in told:
                    one["failed"] = told["failed"]
                    print(f"{case}, {engine}: {told['failed']}", flush=True)
                    continue
                one["runs_s"].append(told.pop("seconds"))
                one |= told
                if number == 0 and wanted is not None:
                    rows = answer(work, case, until_us)
                    one |= {"rows": len(rows), "same_rows": same(rows, wanted)}
                print(f"{case}, {engine}: {one['runs_s'][-1]:.2f} s, {told}", flush=True)
    return {engine: _summed_up(case, of, data) for engine, of in found.items()}


def _answer_of_duckdb(case: str, data: Path, folder: Path, until_us: int) -> Any:
    work = folder / "wanted"
    work.mkdir()
    told = run("duckdb", case, data, work)
    if "failed" in told:
        raise SystemExit(f"{case}: DuckDB must give the rows to compare with; {told['failed']}")
    rows = answer(work, case, until_us)
    if not len(rows):
        raise SystemExit(f"{case}: there must be rows to compare; got none. Take more --rows.")
    return rows


def _summed_up(case: str, of: dict[str, Any], data: Path) -> dict[str, Any]:
    if not of.get("runs_s"):
        return of
    folders = {"equality": "keyed/*", "asof": "keyed/*", "band": "band", "tiny": "tiny"}
    files = data.glob(f"{folders.get(case, 'events')}/*.parquet")
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    found = of | {"seconds": middle(of["runs_s"]), "rows_in": rows}
    found["rows_per_second"] = rows / statistics.median(of["runs_s"])
    if "batches" in of:
        found["batch_ms"] = 1e3 * statistics.median(of["runs_s"]) / max(of["batches"], 1)
    return found


def table(cases: dict[str, Any]) -> Iterator[str]:
    """Rows a second of each engine, in Markdown."""
    engines = list(dict.fromkeys(engine for of in cases.values() for engine in of))
    yield "| rows/s | " + " | ".join(engines) + " |"
    yield "|---|" + "---|" * len(engines)
    for case, of in cases.items():
        cells = [_cell(case, of.get(engine, {})) for engine in engines]
        yield f"| {case} | {' | '.join(cells)} |"


def _cell(case: str, of: dict[str, Any]) -> str:
    if "rows_per_second" not in of:
        return "failed" if "failed" in of else "-"
    if case == "tiny":
        return f"{of['batch_ms']:.0f} ms a batch"
    other = "" if of.get("same_rows", True) else " (other rows)"
    return f"{of['rows_per_second']:,.0f}{other}"


def settings_table(cases: dict[str, Any]) -> Iterator[str]:
    """The version and the settings of each engine, and what it cannot do."""
    yield "| engine | version | settings | not done, because |"
    yield "|---|---|---|---|"
    for engine in dict.fromkeys(engine for of in cases.values() for engine in of):
        did = [of[engine] for of in cases.values() if "version" in of.get(engine, {})]
        version, settings = (did[0][k] if did else "-" for k in ("version", "settings"))
        reasons = {
            c: of[engine]["cannot"] for c, of in cases.items() if "cannot" in of.get(engine, {})
        }
        cannot = "; ".join(f"{case}: {why}" for case, why in reasons.items()) or "-"
        yield f"| {engine} | {version} | {settings} | {cannot} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    common_arguments(parser, rounds=3)
    every = [*HERE_TOO, *PACKAGES]
    parser.add_argument("--setup", action="store_true", help="install the other engines")
    parser.add_argument("--engines", nargs="+", choices=every, default=every)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--rows", type=int, default=ROWS, help="of the events")
    asked = parser.parse_args()
    if asked.setup:
        set_up()
        return
    engines = [engine for engine in asked.engines if python_of(engine).exists()]
    for engine in sorted(set(asked.engines) - set(engines)):
        print(f"{engine}: left out; `python benchmarks/peers.py --setup` installs it")
    data = Path(asked.data) / f"peers-{asked.rows}"
    write_input(data, asked.rows)
    found = {case: measure(case, engines, asked.rounds, data) for case in asked.cases}
    print("\n".join([*table(found), "", *settings_table(found)]))
    name = "peers" if CORES == 2 else f"peers-{CORES}"
    write_report(name, {"rows": asked.rows, "rounds": asked.rounds, "cases": found})


if __name__ == "__main__":
    main()
